//! Adds up what several threads or hosts have counted.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::Lazy;

/// Something of which each thread has its part.
pub trait Merge {
    /// Adds the part of another thread or host.
    fn merge(&mut self, other: &Self);
}

macro_rules! added {
    ($($number:ty),*) => {
        $(impl Merge for $number {
            fn merge(&mut self, other: &Self) {
                *self += other;
            }
        })*
    };
}

added!(u32, u64, u128, i128);

impl<const DIGITS: u8> Merge for Lazy<DIGITS> {
    fn merge(&mut self, other: &Self) {
        self.add(other);
    }
}

impl<K: Ord + Copy, C: for<'a> AddAssign<&'a C> + Default> Merge for BTreeMap<K, C> {
    fn merge(&mut self, other: &Self) {
        for (key, count) in other {
            *self.entry(*key).or_default() += count;
        }
    }
}

/// Implements [`Merge`] for a type that has a `merge` of its own.
macro_rules! own {
    ($of:ty) => {
        impl $crate::Merge for $of {
            fn merge(&mut self, other: &Self) {
                <$of>::merge(self, other);
            }
        }
    };
}

pub(crate) use own;

impl<T: Merge> Merge for [T] {
    fn merge(&mut self, other: &Self) {
        self.iter_mut().zip(other).for_each(|(mine, theirs)| mine.merge(theirs));
    }
}

impl<T: Merge + Default> Merge for Vec<T> {
    fn merge(&mut self, other: &Self) {
        if self.len() < other.len() {
            self.resize_with(other.len(), T::default);
        }
        self.as_mut_slice().merge(other);
    }
}

impl<T: Merge + ?Sized> Merge for Box<T> {
    fn merge(&mut self, other: &Self) {
        (**self).merge(other);
    }
}

impl<T: Merge + Default> Merge for Option<T> {
    fn merge(&mut self, other: &Self) {
        if let Some(theirs) = other {
            self.get_or_insert_default().merge(theirs);
        }
    }
}

/// Gives a struct a `merge` that merges its fields. Every field must be named, so none is forgotten:
/// of those behind `most`, the largest is taken, and those behind `keeps` stay.
#[macro_export]
macro_rules! merged {
    ($of:ty: $($field:ident),* $(; most: $($most:ident),*)? $(; keeps: $($kept:ident),*)?) => {
        impl $of {
            /// Adds the part of another thread or host.
            pub fn merge(&mut self, other: &Self) {
                let Self { $($field,)* $($($most,)*)? $($($kept: _,)*)? } = self;
                $($crate::Merge::merge($field, &other.$field);)*
                $($(*$most = (*$most).max(other.$most);)*)?
            }
        }

        impl $crate::Merge for $of {
            fn merge(&mut self, other: &Self) {
                <$of>::merge(self, other);
            }
        }
    };
}
