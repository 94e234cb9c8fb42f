//! One value for each stretch of a window of any length.
//!
//! How it works: the length of a cell is a power of two of nanoseconds. When there would be too
//! many cells, each pair of neighbours is merged into one. Cells of several threads therefore
//! align, and a run of days takes no more memory than one of a minute.

/// Combines the values of two neighbouring cells, or of the same cell of two threads.
pub(crate) trait Join: Copy + Default {
    fn join(self, other: Self) -> Self;
}

impl Join for u64 {
    fn join(self, other: u64) -> u64 {
        self + other
    }
}

impl Join for f64 {
    fn join(self, other: f64) -> f64 {
        self + other
    }
}

impl Join for bool {
    fn join(self, other: bool) -> bool {
        self || other
    }
}

/// One value for each stretch of time; all stretches have the same length.
#[derive(Clone, Debug)]
pub(crate) struct Cells<T> {
    /// The binary logarithm of the cell length in ns.
    pub(crate) shift: u32,
    most: usize,
    pub(crate) values: Vec<T>,
}

impl<T: Join> Cells<T> {
    pub(crate) fn of(shift: u32, most: usize) -> Self {
        Cells { shift, most, values: Vec::new() }
    }

    /// The cell that holds the time `since_ns` after the start.
    #[inline]
    pub(crate) fn at(&mut self, since_ns: u64) -> &mut T {
        while since_ns >> self.shift >= self.most as u64 {
            self.coarsen();
        }
        let cell = (since_ns >> self.shift) as usize;
        if cell >= self.values.len() {
            self.values.resize(cell + 1, T::default());
        }
        &mut self.values[cell]
    }

    #[cold]
    fn coarsen(&mut self) {
        let joined = |pair: &[T]| pair.iter().copied().fold(T::default(), T::join);
        self.values = self.values.chunks(2).map(joined).collect();
        self.shift += 1;
    }

    pub(crate) fn merge(&mut self, other: &Cells<T>) {
        let mut other = other.clone();
        while self.shift < other.shift {
            self.coarsen();
        }
        while other.shift < self.shift {
            other.coarsen();
        }
        if self.values.len() < other.values.len() {
            self.values.resize(other.values.len(), T::default());
        }
        for (mine, theirs) in self.values.iter_mut().zip(other.values) {
            *mine = mine.join(theirs);
        }
    }
}
