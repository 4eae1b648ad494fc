//! A layer of a network, to be timed beside other libraries' products.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rlox_core::nn::{Activation, Activations, Mlp};

/// A linear layer of `n` inputs and `n` outputs. A call computes its outputs for `n` rows, on one thread:
/// a product, whose weights are transposed for it, and a bias.
#[pyclass(module = "rlox._laboratory", unsendable)]
pub(crate) struct Layer {
    mlp: Mlp,
    params: Vec<f32>,
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
        Ok(Self {
            params: vec![0.5; mlp.n_params()],
            mlp,
            rows: vec![0.5; n * n],
            n,
            outputs: Activations::default(),
        })
    }

    fn __call__(&mut self) {
        let (rows, outputs) = (&self.rows, &mut self.outputs);
        self.mlp.forward(&self.params, rows, self.n, outputs);
    }
}
