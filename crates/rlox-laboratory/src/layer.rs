//! A layer of a network, to be timed beside other libraries' products.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::nn::{Activation, Activations, Mlp, Packed};

/// A linear layer of `n` inputs and `n` outputs. A call computes its outputs for `n` rows, on one thread:
/// a product, whose weights lie as a network packs them for several calls, and a bias.
#[pyclass(module = "rlox._laboratory", unsendable)]
pub(crate) struct Layer {
    mlp: Mlp,
    packed: Packed,
    rows: Vec<f32>,
    n: usize,
    outputs: Activations,
}

#[pymethods]
impl Layer {
    #[new]
    fn new(n: usize) -> PyResult<Self> {
        let mlp = Mlp::new(&[n, n], Activation::Relu)
            .map_err(|error| PyValueError::new_err(format!("n: {error}")))?;
        let mut packed = Packed::default();
        mlp.pack(&vec![0.5; mlp.n_params()], &mut packed);
        Ok(Self {
            mlp,
            packed,
            rows: vec![0.5; n * n],
            n,
            outputs: Activations::default(),
        })
    }

    fn __call__(&mut self) {
        let (rows, outputs) = (&self.rows, &mut self.outputs);
        self.mlp.forward_packed(&self.packed, rows, self.n, outputs);
    }
}
