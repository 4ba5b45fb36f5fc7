import HTTPCore

/// A request's Accept-Encoding (RFC 9110 §12.5.3), as far as the codings are known here.
package struct AcceptedCodings: Sendable, Equatable {
    /// Whether the field is present.
    package private(set) var isPresent = false
    /// The weights of the listed codings, in thousandths, by raw value.
    private var named = [Int?](repeating: nil, count: ContentCoding.allCases.count)
    /// The weight of `*`.
    private var others: Int?
    /// Whether a coding that is not known here is listed, and acceptable.
    private var acceptsUnknown = false

    /// Creates the value for a request without the field.
    package init() {}

    /// Parses lines with these values.
    package init(_ fieldValues: [[UInt8]]) {
        for value in fieldValues { add(value.span) }
    }

    /// Adds a line. If a coding is listed twice, the lower weight counts; a member that does not
    /// follow the grammar is ignored.
    package mutating func add(_ value: Span<UInt8>) {
        isPresent = true
        var members = ListMembers(value)
        while let member = members.next(in: value) {
            let member = value.extracting(member)
            var end = 0
            while end < member.count, member[end] != UInt8(ascii: ";"),
                !ASCII.isWhitespace(member[end])
            {
                end += 1
            }
            guard let weight = Weight.parse(member.extracting(end..<member.count)) else {
                continue
            }
            let name = member.extracting(0..<end)
            if name.equals("*") {
                others = min(others ?? weight, weight)
            } else if let coding = ContentCoding(name: name) {
                let index = Int(coding.rawValue)
                named[index] = min(named[index] ?? weight, weight)
            } else if weight > 0 {
                acceptsUnknown = true
            }
        }
    }

    /// The weight of a coding in thousandths; 0 if it is not acceptable.
    ///
    /// If the field is absent everything is acceptable, but a client that does not send it often
    /// supports no coding: all except `identity` then have the lowest weight. `identity` is
    /// acceptable unless it, or `*` if it is not listed, has the weight 0; its weight is the lowest
    /// if it is not listed.
    package func weight(of coding: ContentCoding) -> Int {
        guard isPresent else { return coding == .identity ? 1000 : 1 }
        if let weight = named[Int(coding.rawValue)] ?? others { return weight }
        return coding == .identity ? 1 : 0
    }

    /// Whether a coding is listed with a weight that follows the grammar.
    package func names(_ coding: ContentCoding) -> Bool { named[Int(coding.rawValue)] != nil }

    /// Parses the weight, in thousandths, after a member's name; `text` begins after the name.
    /// Returns 1000 if there is none, and `nil` for anything that does not follow the grammar.
    package static func weight(after text: Span<UInt8>) -> Int? { Weight.parse(text) }

    /// Whether the request asks for content without any coding: it lists none that is acceptable,
    /// or does not have the field at all.
    package var isForIdentity: Bool {
        guard isPresent else { return true }
        return accepts(.identity) && !acceptsUnknown
            && !ContentCoding.allCases.contains { $0 != .identity && accepts($0) }
    }

    /// Whether a coding is acceptable.
    package func accepts(_ coding: ContentCoding) -> Bool { weight(of: coding) > 0 }

    /// The acceptable candidate with the greatest weight, the first of equal ones; `nil` if there
    /// is none.
    package func best(of candidates: [ContentCoding]) -> ContentCoding? {
        var best: (coding: ContentCoding, weight: Int)?
        for coding in candidates {
            let weight = weight(of: coding)
            if weight > best?.weight ?? 0 { best = (coding, weight) }
        }
        return best?.coding
    }
}

/// Weights (RFC 9110, section 12.4.2).
enum Weight {
    /// The weight in thousandths that follows a member: 1000 if nothing follows, `nil` if anything
    /// else does.
    ///
    ///     weight = OWS ";" OWS "q=" qvalue
    ///     qvalue = ( "0" [ "." 0*3DIGIT ] ) / ( "1" [ "." 0*3("0") ] )
    static func parse(_ text: Span<UInt8>) -> Int? {
        var position = skipSpace(text, from: 0)
        if position == text.count { return 1000 }
        guard text[position] == UInt8(ascii: ";") else { return nil }
        position = skipSpace(text, from: position + 1)
        guard text.count >= position + 3, ASCII.lowercased(text[position]) == UInt8(ascii: "q"),
            text[position + 1] == UInt8(ascii: "=")
        else { return nil }
        return value(text.extracting(position + 2..<text.count))
    }

    private static func value(_ text: Span<UInt8>) -> Int? {
        guard text.count <= 5, text.count == 1 || text[1] == UInt8(ascii: ".") else { return nil }
        guard text[0] == UInt8(ascii: "0") || text[0] == UInt8(ascii: "1") else { return nil }
        var value = Int(text[0] - 0x30)
        for index in 2..<5 {
            value *= 10
            guard index < text.count else { continue }
            guard ASCII.isDigit(text[index]) else { return nil }
            value += Int(text[index] - 0x30)
        }
        return value <= 1000 ? value : nil
    }

    private static func skipSpace(_ text: Span<UInt8>, from start: Int) -> Int {
        var index = start
        while index < text.count, ASCII.isWhitespace(text[index]) { index += 1 }
        return index
    }
}
