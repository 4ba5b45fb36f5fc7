import HTTPCore
import HTTPTypes

/// A Content-Range field (RFC 9110 section 14.4).
///
///     Content-Range = range-unit SP ( range-resp / unsatisfied-range )
///     range-resp    = first-pos "-" last-pos "/" ( complete-length / "*" )
///     unsatisfied-range = "*/" complete-length
enum ContentRange: Equatable {
    /// The first and last byte, and the complete length, or `nil` if it is unknown.
    case part(first: Int64, last: Int64, total: Int64?)
    /// The range is not satisfiable; with the complete length.
    case unsatisfied(total: Int64)

    /// Returns `nil` unless the text is a single valid range of bytes within its complete length.
    init?(_ text: String) {
        let words = text.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, words[0].lowercasedASCII == "bytes" else { return nil }
        let sides = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard sides.count == 2 else { return nil }
        let total = Self.number(sides[1])
        guard sides[0] != "*" else {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        let ends = sides[0].split(separator: "-", omittingEmptySubsequences: false)
        guard total != nil || sides[1] == "*", ends.count == 2,
            let first = Self.number(ends[0]), let last = Self.number(ends[1]), first <= last,
            last < .max, total.map({ last < $0 }) ?? true
        else { return nil }
        self = .part(first: first, last: last, total: total)
    }

    /// Parses `1*DIGIT`, up to the maximum length of a file.
    private static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int64(text)
    }
}

extension HTTPResponse {
    /// The value of Content-Length, if there is a valid one.
    var contentLength: Int64? {
        let text = try? headerFields.single(.contentLength)
        return text.flatMap { Int64($0) }
    }

    /// The value of Content-Range, if there is a valid one.
    var contentRange: ContentRange? {
        let text = try? headerFields.single(.contentRange)
        return text.flatMap { ContentRange($0) }
    }

    /// Whether the content is encoded (RFC 9110 section 8.4).
    var hasCodedContent: Bool {
        guard let coding = headerFields[.contentEncoding] else { return false }
        return !coding.isEmpty && coding.lowercasedASCII != "identity"
    }
}
