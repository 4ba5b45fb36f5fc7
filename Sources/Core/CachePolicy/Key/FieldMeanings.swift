import HTTPCore

/// The fields that a route compares by what their values mean, in place of how they are written.
public struct FieldMeanings: OptionSet, Sendable, Hashable {
    /// One bit for each.
    public let rawValue: UInt8
    /// Creates a set from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Accept-Encoding: the known codings that it accepts, whatever their order and weights.
    public static let acceptEncoding = FieldMeanings(rawValue: 1)
    /// Accept-Language: the languages in the order in which they are wanted, whatever their
    /// weights.
    public static let acceptLanguage = FieldMeanings(rawValue: 2)

    /// The set for fields in lower case; others are ignored.
    public init(fields: [String]) {
        self = []
        if fields.contains("accept-encoding") { insert(.acceptEncoding) }
        if fields.contains("accept-language") { insert(.acceptLanguage) }
    }

    /// Whether the field, in lower case, is one of them.
    func contains(_ name: Span<UInt8>) -> Bool {
        contains(.acceptEncoding) && name.equals("accept-encoding")
            || contains(.acceptLanguage) && name.equals("accept-language")
    }
}

/// The canonical forms of lists whose members' order says nothing, and of what they mean.
///
/// An intermediary may not change the request for that: the server still gets what the client sent,
/// and chooses by it. So only what leads every server to a response that suits both clients may be
/// the same here.
enum ListMeaning {
    /// The longest list that is read. Longer ones, which no browser sends, are compared as they
    /// are, so that a request takes bounded time.
    static let maximumBytes = 256
    /// What a meaning begins with: no value of a field has it.
    private static let mark: UInt8 = 1
    private static let comma = UInt8(ascii: ",")
    private static let semicolon = UInt8(ascii: ";")

    /// The codings in the order in which browsers list them, so that what they send is in order
    /// already.
    private static let codings: [[UInt8]] = ["gzip", "deflate", "br", "zstd"].map {
        Array($0.utf8)
    }

    /// A list in its canonical order, if no member has a weight; otherwise as it is.
    /// - Parameter list: normalized: in lower case, separated by commas alone.
    static func ordered(_ list: [UInt8], isOfCodings: Bool) -> [UInt8] {
        guard list.contains(comma), !list.contains(semicolon) else { return list }
        let members = list.split(separator: comma, omittingEmptySubsequences: true)
        let sorted = members.sorted { precedes($0, $1, isOfCodings) }
        return Array(sorted.joined(separator: [comma]))
    }

    private static func precedes(
        _ one: ArraySlice<UInt8>, _ other: ArraySlice<UInt8>, _ isOfCodings: Bool
    ) -> Bool {
        if isOfCodings {
            let (first, second) = (rank(one), rank(other))
            if first != second { return first < second }
        }
        return one.lexicographicallyPrecedes(other)
    }

    private static func rank(_ coding: ArraySlice<UInt8>) -> Int {
        codings.firstIndex { coding.elementsEqual($0) } ?? codings.count
    }

    /// The codings that a value of Accept-Encoding accepts, if it names known ones only; `nil` if
    /// the value must be compared as it is.
    /// - Parameter list: normalized.
    static func codings(in list: [UInt8]) -> [UInt8]? {
        var accepted: [[UInt8]] = []
        for member in list.split(separator: comma) {
            guard let (name, weight) = weighted(member) else { return nil }
            let isIdentity = name.elementsEqual("identity".utf8)
            let coding = name.elementsEqual("x-gzip".utf8) ? codings[0] : Array(name)
            guard isIdentity || codings.contains(coding) else { return nil }
            // What is not acceptable without a coding is another question.
            if isIdentity, weight == 0 { return nil }
            if weight == 0 || isIdentity { continue }
            if !accepted.contains(coding) { accepted.append(coding) }
        }
        return [mark] + codings.filter(accepted.contains).joined(separator: [comma])
    }

    /// The languages of a value of Accept-Language in the order in which they are wanted: those of
    /// one weight separated by commas, `>` before those of the next lower one, `<` before those
    /// that are not wanted. `nil` if the value must be compared as it is.
    /// - Parameter list: normalized.
    static func languages(in list: [UInt8]) -> [UInt8]? {
        var byWeight: [Int: [ArraySlice<UInt8>]] = [:]
        for member in list.split(separator: comma) {
            guard let (name, weight) = weighted(member) else { return nil }
            byWeight[weight, default: []].append(name)
        }
        var meaning = [mark]
        for (weight, names) in byWeight.sorted(by: { $0.key > $1.key }) {
            if weight == 0 {
                meaning.append(UInt8(ascii: "<"))
            } else if meaning.count > 1 {
                meaning.append(UInt8(ascii: ">"))
            }
            let sorted = names.sorted { $0.lexicographicallyPrecedes($1) }
            meaning += sorted.joined(separator: [comma])
        }
        return meaning
    }

    /// A member and its weight in thousandths (RFC 9110 §12.4.2); `nil` if it has anything else.
    private static func weighted(_ member: ArraySlice<UInt8>) -> (ArraySlice<UInt8>, Int)? {
        let parts = member.split(separator: semicolon, omittingEmptySubsequences: false)
            .map(trimmed)
        guard let name = parts.first, !name.isEmpty, name.allSatisfy({ ByteClass.isToken($0) })
        else { return nil }
        if parts.count == 1 { return (name, 1000) }
        guard parts.count == 2, let weight = thousandths(parts[1]) else { return nil }
        return (name, weight)
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var bytes = bytes
        while let first = bytes.first, ASCII.isWhitespace(first) { bytes.removeFirst() }
        while let last = bytes.last, ASCII.isWhitespace(last) { bytes.removeLast() }
        return bytes
    }

    /// `q=0.5` as 500.
    private static func thousandths(_ parameter: ArraySlice<UInt8>) -> Int? {
        guard parameter.starts(with: "q=".utf8) else { return nil }
        let value = parameter.dropFirst(2)
        guard let first = value.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1")
        else { return nil }
        let digits = value.dropFirst(2)
        guard value.count == 1 || value.dropFirst().first == UInt8(ascii: "."), digits.count <= 3,
            digits.allSatisfy(ASCII.isDigit)
        else { return nil }
        var weight = first == UInt8(ascii: "1") ? 1000 : 0
        for (place, digit) in zip([100, 10, 1], digits) {
            weight += place * Int(digit - UInt8(ascii: "0"))
        }
        return weight <= 1000 ? weight : nil
    }
}
