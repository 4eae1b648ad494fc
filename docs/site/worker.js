// The search runs in a worker, and a browser starts none from a file. Its source stands here (assemble.py
// puts it in), so that pages opened from files start it from memory. From a server nothing changes.
if (location.protocol === "file:") {
  const source = "SOURCE";
  const FromAddress = Worker;
  window.Worker = class extends FromAddress {
    constructor() {
      super(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    }
  };
}
