import HTTPCore
import Trust

/// Why another program's pins cannot be converted.
package struct PinFormatError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The line or key concerned; empty for the whole input.
    package var place: String
    package var problem: String
    /// What would be valid; empty if that is clear from the problem.
    package var expected: String

    package init(_ place: String, _ problem: String, expected: String) {
        self.place = place
        self.problem = problem
        self.expected = expected
    }

    package var description: String {
        (place.isEmpty ? "" : place + ": ") + problem
            + (expected.isEmpty ? "" : "; expected \(expected)")
    }
}

/// Pins for hosts, as in other programs: one matching pin is enough.
package struct HostPins: Hashable, Sendable {
    /// Host patterns of a configuration, at least one.
    package var patterns: [String]
    /// Pins in the configuration's notation. If empty, these hosts are exempt from the pins of
    /// other patterns that match them.
    package var pins: [String]
    package var mode = PinningMode.publicKey
    package var isEnforced = true
    /// When the pins are no longer enforced, in seconds since 1970.
    package var expires: Int64?
    /// Remarks about settings that were not converted.
    package var notes: [String] = []

    package init(patterns: [String], pins: [String]) {
        self.patterns = patterns
        self.pins = pins
    }

    /// Parses a host pattern of the command line.
    package static func pattern(_ text: String) throws(PinFormatError) -> String {
        try PinFormat.pattern(text, at: "--host")
    }

    /// How specific a pattern is: a pattern with more labels is more specific, and among patterns
    /// with the same number of labels, an exact name is more specific than a wildcard.
    static func rank(_ pattern: String) -> (labels: Int, form: Int) {
        let form = pattern.hasPrefix("**.") ? 2 : pattern.hasPrefix("*.") ? 1 : 0
        let name = pattern.drop { $0 == "*" || $0 == "." }
        return (name.split(separator: ".").count, form)
    }

    /// Whether one pattern matches every host that another one matches.
    static func covers(_ general: String, _ special: String) -> Bool {
        if general == special { return true }
        let domain = general.drop { $0 == "*" || $0 == "." }
        let name = special.drop { $0 == "*" || $0 == "." }
        if general.hasPrefix("**.") { return name == domain || name.hasSuffix("." + domain) }
        guard general.hasPrefix("*."), !special.hasPrefix("*"), name.hasSuffix("." + domain)
        else { return false }
        return !name.dropLast(domain.count + 1).contains(".")
    }
}

extension [HostPins] {
    /// Sorted with the most specific first, since the first matching entry applies.
    package var inOrder: [HostPins] {
        enumerated().sorted { left, right in
            let a = HostPins.rank(left.element.patterns[0])
            let b = HostPins.rank(right.element.patterns[0])
            return (-a.labels, a.form, left.offset) < (-b.labels, b.form, right.offset)
        }.map(\.element)
    }

    /// The equivalent configuration fragment.
    package var configuration: String {
        var hosts = ["hosts:"]
        var pinsets = ["pinsets:"]
        var names: Set<String> = []
        for one in self {
            let first = one.patterns.first ?? ""
            let name = Self.name(first, one.pins.isEmpty, &names)
            for note in one.notes { hosts.append("  # \(note)") }
            let patterns = one.patterns.map { "\"\($0)\"" }.joined(separator: ", ")
            hosts += ["  - match: [\(patterns)]", "    upgrade: https", "    pinsets: [\(name)]"]
            pinsets.append("  \(name):")
            guard !one.pins.isEmpty else {
                pinsets.append("    mode: none")
                continue
            }
            pinsets += ["    mode: \(one.mode.rawValue)", "    pins:"]
            for pin in one.pins { pinsets.append("      - \(Self.quoted(pin))") }
            if !one.isEnforced { pinsets.append("    enforce: false") }
            guard let expires = one.expires else { continue }
            pinsets.append("    expires: \(CivilDate.text(secondsSince1970: expires))")
            if one.isEnforced { pinsets.append("    afterExpiry: report") }
        }
        return (hosts + pinsets).joined(separator: "\n") + "\n"
    }

    private static func name(
        _ pattern: String, _ isExempt: Bool, _ names: inout Set<String>
    ) -> String {
        let domain = pattern.drop { $0 == "*" || $0 == "." }
        let letters = domain.filter {
            $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == "_")
        }
        let base = String(letters.suffix(48)) + (isExempt ? "-exempt" : "")
        var name = base.isEmpty ? "imported" : base
        var count = 1
        while !names.insert(name).inserted {
            count += 1
            name = "\(base)-\(count)"
        }
        return name
    }

    private static func quoted(_ pin: String) -> String { JSONText.quoted(pin) }
}

/// Functions shared by the formats.
enum PinFormat {
    /// Converts a host of another program's file to a host pattern.
    static func pattern(
        _ host: String, subdomains: Bool = false, at place: String
    ) throws(PinFormatError) -> String {
        let text = (subdomains ? "**." : "") + host.lowercasedASCII
        do {
            return try HostPattern(text).description
        } catch {
            throw PinFormatError(
                place, "\"\(host)\" is not a valid host: \(error.problem)", expected: "")
        }
    }

    /// Converts a key's digest in base64, with or without the prefix `sha256/`, to a pin.
    static func pin(_ text: String, at place: String) throws(PinFormatError) -> String {
        let written = text.contains("/") && text.lowercasedASCII.hasPrefix("sha") ? text : nil
        let pin = written ?? "sha256/" + text
        do {
            guard case .literal(let pins) = try Pin.parse(pin), pins.count == 1,
                case .keyDigest(let digest)? = pins.first
            else {
                throw PinFormatError(
                    place, "\"\(text)\" is not a public key pin",
                    expected: "one SHA-256 digest in base64")
            }
            return digest.keyPinText
        } catch let error as PinError {
            throw PinFormatError(
                place, "\"\(text)\" is not a valid pin: \(error.problem)", expected: "")
        } catch {
            throw PinFormatError(place, "\(error)", expected: "")
        }
    }

    /// Parses a date. The result is its first second, in seconds since 1970.
    static func day(_ text: String, at place: String) throws(PinFormatError) -> Int64 {
        guard let seconds = CivilDate.secondsSince1970(rfc3339: text.utf8) else {
            throw PinFormatError(
                place, "\"\(text)\" is not a valid date", expected: "a date such as 2027-06-01")
        }
        return seconds
    }
}
