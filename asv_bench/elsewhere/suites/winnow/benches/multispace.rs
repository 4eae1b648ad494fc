//! The space before a word: none, four characters and a thousand.

use criterion::{black_box, criterion_group, criterion_main, BenchmarkId, Criterion};
use winnow::character::multispace0;
use winnow::error::Error;
use winnow::IResult;

fn multispace(c: &mut Criterion) {
    let mut group = c.benchmark_group("multispace0");
    for length in [0, 4, 1000] {
        let text = " \t\r\n".repeat(length / 4) + "word";
        group.bench_with_input(BenchmarkId::from_parameter(length), &text, |b, text| {
            b.iter(|| {
                let found: IResult<&str, &str, Error<&str>> = multispace0(black_box(text.as_str()));
                found
            });
        });
    }
}

criterion_group!(benches, multispace);
criterion_main!(benches);
