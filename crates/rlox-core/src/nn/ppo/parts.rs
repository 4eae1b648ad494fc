//! Cuts rows of logits into one part for each categorical distribution. One categorical and several
//! share the code of the update, and the compiler sees that one needs no cutting.

/// How rows are cut.
pub(super) trait Parts: Copy {
    /// The number of parts of a row.
    fn in_row(self) -> usize;

    /// The parts of all rows in order; the rows lie one after another.
    fn of(self, rows: &[f32]) -> impl Iterator<Item = &[f32]>;

    /// The same, to be written to.
    fn of_mut(self, rows: &mut [f32]) -> impl Iterator<Item = &mut [f32]>;
}

/// Each row of this width is one part.
#[derive(Clone, Copy)]
pub(super) struct Whole(pub(super) usize);

impl Parts for Whole {
    fn in_row(self) -> usize {
        1
    }

    fn of(self, rows: &[f32]) -> impl Iterator<Item = &[f32]> {
        rows.chunks_exact(self.0)
    }

    fn of_mut(self, rows: &mut [f32]) -> impl Iterator<Item = &mut [f32]> {
        rows.chunks_exact_mut(self.0)
    }
}

/// Each row has parts of these widths.
#[derive(Clone, Copy)]
pub(super) struct Several<'a>(pub(super) &'a [usize]);

impl Parts for Several<'_> {
    fn in_row(self) -> usize {
        self.0.len()
    }

    fn of(self, rows: &[f32]) -> impl Iterator<Item = &[f32]> {
        let mut rest = rows;
        let cut = move |&width| rest.split_off(..width);
        self.0.iter().cycle().map_while(cut)
    }

    fn of_mut(self, rows: &mut [f32]) -> impl Iterator<Item = &mut [f32]> {
        let mut rest = rows;
        let cut = move |&width| rest.split_off_mut(..width);
        self.0.iter().cycle().map_while(cut)
    }
}
