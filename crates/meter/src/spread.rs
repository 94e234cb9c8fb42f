//! Summary figures of many values: count, minimum, mean, percentiles and maximum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::lazy::Lazy;

/// The recorded values; merges over threads without loss.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    values: Lazy,
    sum: u128,
    least: u64,
    most: u64,
}

/// Summary of a set of values, in the unit of the field's name. Percentiles have three significant
/// digits.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Quantiles")]
pub struct Figures {
    /// The number of values.
    pub count: u64,
    /// The minimum.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The median: the smallest value that half of the values do not exceed.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// The maximum.
    pub max: u64,
}

impl Spread {
    /// Records a value `count` times.
    #[inline]
    pub fn record(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        let first = self.values.is_empty();
        self.least = if first { value } else { self.least.min(value) };
        self.most = self.most.max(value);
        self.sum += u128::from(value) * u128::from(count);
        self.values.record_times(value, count);
    }

    /// Adds the values of another spread.
    pub fn merge(&mut self, other: &Spread) {
        if other.values.is_empty() {
            return;
        }
        let first = self.values.is_empty();
        self.least = if first { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.sum += other.sum;
        self.values.add(&other.values);
    }

    /// The figures; none if there are no values.
    pub fn figures(&self) -> Option<Figures> {
        let count = self.values.len();
        let at = |share: f64| self.values.quantile(share).clamp(self.least, self.most);
        (count > 0).then(|| Figures {
            count,
            min: self.least,
            mean: self.sum as f64 / count as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Spread {
        let mut spread = Spread::default();
        values.into_iter().for_each(|value| spread.record(value, 1));
        spread
    }

    #[test]
    fn nothing_recorded_has_no_figures() {
        let mut spread = Spread::default();
        spread.record(7, 0);
        spread.merge(&Spread::default());
        assert_eq!(spread.figures(), None);
    }

    #[test]
    fn the_figures_are_those_of_the_values() {
        let figures = of(1..=100).figures().expect("values");
        let expected =
            Figures { count: 100, min: 1, mean: 50.5, p50: 50, p90: 90, p99: 99, max: 100 };
        assert_eq!(figures, expected);
        let zeros = of([0, 0, 0]).figures().expect("values");
        assert_eq!((zeros.min, zeros.p50, zeros.max), (0, 0, 0), "a zero stays one");
        let large = of([1_234_567, 1_234_567]).figures().expect("values");
        assert_eq!((large.p50, large.max), (1_234_567, 1_234_567), "ends are exact");
        let mut repeated = of([2]);
        repeated.record(6, 3);
        let repeated = repeated.figures().expect("values");
        assert_eq!((repeated.count, repeated.mean), (4, 5.0), "three of a value weigh three times");
    }

    #[test]
    fn merged_figures_are_those_of_all_values() {
        let mut sum = of(1..=40);
        sum.merge(&of(41..=100));
        assert_eq!(sum.figures(), of(1..=100).figures());
    }
}
