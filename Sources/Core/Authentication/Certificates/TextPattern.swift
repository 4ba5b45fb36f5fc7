import HTTPCore

/// A text in which `*` stands for any characters but one kind.
struct TextPattern: Sendable, Hashable {
    /// The texts between the stars: one more than there are of these.
    private let parts: [[UInt8]]
    /// What a star does not stand for; `nil` for nothing.
    private let barrier: UInt8?
    /// Whether letters of either case are the same: then a text is made lower-case first.
    private let ignoresCase: Bool

    /// - Parameter parts: the texts between the stars.
    init(parts: [[UInt8]], barrier: UInt8?, ignoresCase: Bool = false) {
        self.parts = ignoresCase ? parts.map { $0.map(ASCII.lowercased) } : parts
        self.barrier = barrier
        self.ignoresCase = ignoresCase
    }

    /// - Parameter text: with `*`, which cannot be escaped.
    init(_ text: String, barrier: UInt8?, ignoresCase: Bool = false) {
        let parts = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
        self.init(parts: parts.map { Array($0) }, barrier: barrier, ignoresCase: ignoresCase)
    }

    var stars: Int { parts.count - 1 }

    /// What the star stands for in a text that matches; empty if there is not exactly one star.
    /// `nil` if the text does not match.
    func match(_ text: [UInt8]) -> [UInt8]? {
        let text = ignoresCase ? text.map(ASCII.lowercased) : text
        switch stars {
        case 0: return text == parts[0] ? [] : nil
        case 1:
            guard text.count >= parts[0].count + parts[1].count, text.starts(with: parts[0]),
                text.suffix(parts[1].count).elementsEqual(parts[1])
            else { return nil }
            let star = text[parts[0].count..<(text.count - parts[1].count)]
            return barrier.map { star.contains($0) } ?? false ? nil : Array(star)
        default: return matches(text) ? [] : nil
        }
    }

    /// Backtracks to the last star alone: the time is at most the product of the lengths.
    private func matches(_ text: [UInt8]) -> Bool {
        /// A star, or a byte.
        let pattern = parts.dropFirst().reduce(parts[0].map(UInt8?.some)) { pattern, part in
            pattern + [nil] + part.map(UInt8?.some)
        }
        var (here, there) = (0, 0)
        var star: (pattern: Int, text: Int)?
        while there < text.count {
            if here < pattern.count, pattern[here] == nil {
                here += 1
                star = (here, there)
            } else if here < pattern.count, pattern[here] == text[there] {
                (here, there) = (here + 1, there + 1)
            } else if let last = star, barrier.map({ text[last.text] != $0 }) ?? true {
                star = (last.pattern, last.text + 1)
                (here, there) = (last.pattern, last.text + 1)
            } else {
                return false
            }
        }
        return pattern[here...].allSatisfy { $0 == nil }
    }
}
