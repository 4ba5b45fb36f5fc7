import HTTPCore

/// An `Accept` field as a list of media ranges with weights (RFC 9110 section 12.5.1).
///
/// A member that is not well-formed is left out; an absent or empty field accepts everything.
public struct AcceptedMediaTypes: Sendable, Equatable {
    /// The most members that are considered; further ones are ignored.
    public static let maximumMembers = 64

    fileprivate struct Member: Sendable, Equatable {
        var type: String
        var subtype: String
        var version: String?
        var weight: Int

        /// How specific a range is: the most specific one decides (section 12.5.1).
        var specificity: Int {
            if type == "*" { return 0 }
            if subtype == "*" { return 1 }
            return version == nil ? 2 : 3
        }
    }

    private var members: [Member] = []
    private let acceptsAll: Bool

    /// The list of a field's value; several fields' values joined with commas. `nil` is no field.
    public init(_ value: String?) {
        let value = value ?? ""
        acceptsAll = value.utf8.allSatisfy(ASCII.isWhitespace)
        for text in AcceptedMediaTypes.split(value, at: ",").prefix(Self.maximumMembers) {
            if let member = AcceptedMediaTypes.member(text) { members.append(member) }
        }
    }

    /// The weight, in thousandths, of a type such as `text/plain` (in lower case), with its version
    /// if it has one. Parameters other than `version` and `q` are ignored. 0 means not accepted.
    public func weight(of type: StaticString, version: String? = nil) -> Int {
        if acceptsAll { return 1000 }
        let name = String(describing: type)
        var best: Member?
        for member in members {
            guard member.matches(name, version: version) else { continue }
            if let current = best, current.specificity > member.specificity { continue }
            if let current = best, current.specificity == member.specificity,
                current.weight >= member.weight
            {
                continue
            }
            best = member
        }
        return best?.weight ?? 0
    }

    /// Whether JSON is preferred to plain text; false if both have the same weight.
    public var prefersJSON: Bool {
        weight(of: "application/json") > weight(of: "text/plain")
    }

    private static func member(_ text: Substring) -> Member? {
        let parts = split(String(text), at: ";").map(\.withoutOuterSpace)
        guard let range = parts.first else { return nil }
        let names = range.split(separator: "/", omittingEmptySubsequences: false)
        guard names.count == 2, !names[0].isEmpty, !names[1].isEmpty else { return nil }
        guard names[0] != "*" || names[1] == "*" else { return nil }
        var member = Member(
            type: names[0].lowercasedASCII, subtype: names[1].lowercasedASCII, version: nil,
            weight: 1000)
        for parameter in parts.dropFirst() {
            let pair = parameter.split(separator: "=", maxSplits: 1)
            guard pair.count == 2 else { continue }
            switch pair[0].withoutOuterSpace.lowercasedASCII {
            case "q":
                guard let weight = weight(pair[1].withoutOuterSpace) else { return nil }
                member.weight = weight
            case "version":
                member.version = String(unquoted(pair[1].withoutOuterSpace))
            default:
                continue
            }
        }
        return member
    }

    /// `qvalue` in thousandths (RFC 9110 section 12.4.2): 0 or 1 with up to three decimals, at most
    /// 1.
    private static func weight(_ text: Substring) -> Int? {
        let digits = Array(text.utf8)
        guard let first = digits.first, first == UInt8(ascii: "0") || first == UInt8(ascii: "1")
        else { return nil }
        guard digits.count <= 5, digits.count == 1 || digits[1] == UInt8(ascii: ".") else {
            return nil
        }
        var weight = first == UInt8(ascii: "1") ? 1000 : 0
        var unit = 100
        for digit in digits.dropFirst(2) {
            guard ASCII.isDigit(digit) else { return nil }
            weight += Int(digit - UInt8(ascii: "0")) * unit
            unit /= 10
        }
        return weight <= 1000 ? weight : nil
    }

    /// Splits at a separator outside quoted strings.
    private static func split(_ text: String, at separator: Character) -> [Substring] {
        var quoted = false
        var escaped = false
        return text.split(omittingEmptySubsequences: true) { character in
            if escaped {
                escaped = false
            } else if quoted && character == "\\" {
                escaped = true
            } else if character == "\"" {
                quoted.toggle()
            } else {
                return !quoted && character == separator
            }
            return false
        }
    }

    private static func unquoted(_ text: Substring) -> Substring {
        guard text.count >= 2, text.first == "\"", text.last == "\"" else { return text }
        return text.dropFirst().dropLast()
    }
}

extension AcceptedMediaTypes.Member {
    fileprivate func matches(_ name: String, version wanted: String?) -> Bool {
        if type == "*" { return true }
        guard name.hasPrefix(type + "/") else { return false }
        if subtype == "*" { return true }
        guard name.utf8.count == type.utf8.count + 1 + subtype.utf8.count else { return false }
        return name.hasSuffix(subtype) && (version == nil || version == wanted)
    }
}
