//! The Location of an answer.

use super::redirect::{LOCATION_BYTES_MOST, Unfollowed};

/// Where an answer says that it leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Location {
    /// It does not say.
    #[default]
    Missing,
    /// Here.
    At(Box<[u8]>),
    /// It is too long, goes over several lines, or there are several that differ.
    Malformed,
}

impl Location {
    /// Adds the value of a Location field.
    pub fn add(&mut self, value: &[u8]) {
        *self = match self {
            _ if value.len() > LOCATION_BYTES_MOST || value.contains(&b'\n') => Location::Malformed,
            Location::Missing => Location::At(value.into()),
            Location::At(before) if **before == *value => return,
            _ => Location::Malformed,
        };
    }

    /// The value as it was sent. An error if there is none that can be read.
    pub fn value(&self) -> Result<&[u8], Unfollowed> {
        match self {
            Location::Missing => Err(Unfollowed::Missing),
            Location::At(value) => Ok(value),
            Location::Malformed => Err(Unfollowed::Malformed),
        }
    }
}
