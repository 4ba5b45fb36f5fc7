import HTTPCore

/// What a request's Accept-Encoding says (RFC 9110, section 12.5.3), of the codings that are known
/// here.
package struct AcceptedCodings: Sendable, Equatable {
    /// Whether the field is there.
    package private(set) var isPresent = false
    /// Weights of the codings that are named, in thousandths, by raw value.
    private var named = [Int?](repeating: nil, count: ContentCoding.allCases.count)
    /// That of `*`.
    private var others: Int?

    /// What a request without the field says.
    package init() {}

    /// What lines with these values say.
    package init(_ fieldValues: [[UInt8]]) {
        for value in fieldValues { add(value.span) }
    }

    /// Adds a line. Of a coding that is named twice the lower weight counts; a member that does not
    /// follow the grammar counts for nothing.
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
            }
        }
    }

    /// The weight of a coding in thousandths; 0: not acceptable.
    ///
    /// Where the field is absent everything is acceptable, but who does not send it often knows no
    /// coding: all but `identity` have the least weight then. `identity` is acceptable unless it,
    /// or `*` without it, has the weight 0; it has the least where nothing is said of it.
    package func weight(of coding: ContentCoding) -> Int {
        guard isPresent else { return coding == .identity ? 1000 : 1 }
        if let weight = named[Int(coding.rawValue)] ?? others { return weight }
        return coding == .identity ? 1 : 0
    }

    /// Whether a coding is named, with a weight that follows the grammar.
    package func names(_ coding: ContentCoding) -> Bool { named[Int(coding.rawValue)] != nil }

    /// The weight in thousandths that follows a member's name, which `text` begins behind: 1000
    /// where there is none, nil for what does not follow the grammar.
    package static func weight(after text: Span<UInt8>) -> Int? { Weight.parse(text) }

    /// Whether a coding is acceptable.
    package func accepts(_ coding: ContentCoding) -> Bool { weight(of: coding) > 0 }

    /// The acceptable one with the greatest weight, of equal ones the first; nil: there is none.
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
    /// The weight in thousandths that follows a member: 1000 where nothing does, nil where
    /// something else does.
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
