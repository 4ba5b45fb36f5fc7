/// Finds the known key that was probably meant by an unknown one.
enum NearestKey {
    /// The number of bytes of a key, and of a candidate, that are compared, so that a hostile file
    /// cannot make the comparison slow.
    static let maximumCompared = 64
    /// The number of candidates that are compared, likewise.
    static let maximumCandidates = 1000

    /// The candidate with the smallest edit distance, the first of several, or `nil` if none is
    /// close. A third of the letters may differ, and in any case one letter may.
    static func nearest(to key: String, among candidates: [String]) -> String? {
        let written = Array(key.lowercased().utf8.prefix(maximumCompared))
        var best: (candidate: String, distance: Int)?
        for candidate in candidates.prefix(maximumCandidates) {
            let known = Array(candidate.lowercased().utf8.prefix(maximumCompared))
            let distance = distance(written, known)
            guard distance <= max(1, max(written.count, known.count) / 3) else { continue }
            if distance < (best?.distance ?? .max) { best = (candidate, distance) }
        }
        return best?.candidate
    }

    /// The number of insertions, deletions, replacements and swaps of adjacent bytes that turn one
    /// key into the other (the restricted Damerau-Levenshtein distance).
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        guard !left.isEmpty, !right.isEmpty else { return max(left.count, right.count) }
        var beforePrevious = [Int](repeating: 0, count: right.count + 1)
        var previous = Array(0...right.count)
        for row in 1...left.count {
            var current = [Int](repeating: row, count: right.count + 1)
            for column in 1...right.count {
                let cost = left[row - 1] == right[column - 1] ? 0 : 1
                current[column] = min(
                    previous[column] + 1, current[column - 1] + 1, previous[column - 1] + cost)
                if row > 1, column > 1, left[row - 1] == right[column - 2],
                    left[row - 2] == right[column - 1]
                {
                    current[column] = min(current[column], beforePrevious[column - 2] + 1)
                }
            }
            beforePrevious = previous
            previous = current
        }
        return previous[right.count]
    }
}
