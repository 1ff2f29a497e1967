//! "Did you mean": finds the valid name that is nearest to a wrong one.

/// The candidate with the smallest edit distance to `word`, if it is close enough to be a typing error. Among equally
/// close candidates, it prefers one with the same letters, because letters are swapped more often than omitted.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // Longer names are generated, so nobody mistypes them, and comparing them takes time.
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let limit = (word.len() / 3).max(1);
    let letters = |word: &str| {
        let mut letters = word.as_bytes().to_vec();
        letters.sort_unstable();
        letters
    };
    let own = letters(word);
    let mut best: Option<((usize, bool), &'c str)> = None;
    for candidate in candidates {
        if candidate == word || candidate.len().abs_diff(word.len()) > limit || candidate.len() > 80 {
            continue;
        }
        let distance = distance(word.as_bytes(), candidate.as_bytes());
        if distance > limit {
            continue;
        }
        let rank = (distance, letters(candidate) != own);
        if best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Number of insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (Damerau-Levenshtein,
/// restricted).
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, &y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, expected) in
            [("", "", 0), ("add", "add", 0), ("addd", "add", 1), ("sepl", "selp", 1), ("ld", "st", 2)]
        {
            assert_eq!(distance(a.as_bytes(), b.as_bytes()), expected, "{a} {b}");
        }
    }

    #[test]
    fn suggests_only_what_is_close() {
        assert_eq!(nearest("sepl", ["set", "selp", "setp"]), Some("selp"));
        assert_eq!(nearest("sept", ["set", "setp"]), Some("setp"));
        assert_eq!(nearest("%r99", ["%rd1", "%f1"]), None);
        assert_eq!(nearest("frobnicate", ["add", "sub"]), None);
        assert_eq!(nearest("%out", ["%out", "%ouT"]), Some("%ouT"));
    }
}
