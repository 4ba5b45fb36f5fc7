import HTTPCore
import Trust

/// Why a text of another program's pins cannot be used.
package struct PinFormatError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A line or a key; empty: the whole.
    package var place: String
    package var problem: String
    /// What would be right; empty: the problem says it.
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

/// Pins for hosts, as other programs have them: any one of the pins is enough.
package struct HostPins: Hashable, Sendable {
    /// Host patterns of a configuration, at least one.
    package var patterns: [String]
    /// As a configuration names them; empty: these hosts are exempt from what others say of them.
    package var pins: [String]
    package var mode = PinningMode.publicKey
    package var isEnforced = true
    /// Seconds since 1970; from then on the pins are not enforced.
    package var expires: Int64?
    /// What was said besides and is not in the configuration.
    package var notes: [String] = []

    package init(patterns: [String], pins: [String]) {
        self.patterns = patterns
        self.pins = pins
    }

    /// A host pattern that the command line names.
    package static func pattern(_ text: String) throws(PinFormatError) -> String {
        try PinFormat.pattern(text, at: "--host")
    }

    /// What tells how special a pattern is: the more labels the more, and with as many an exact
    /// name more than a wildcard.
    static func rank(_ pattern: String) -> (labels: Int, form: Int) {
        let form = pattern.hasPrefix("**.") ? 2 : pattern.hasPrefix("*.") ? 1 : 0
        let name = pattern.drop { $0 == "*" || $0 == "." }
        return (name.split(separator: ".").count, form)
    }

    /// Whether all that a pattern matches, another one matches too.
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
    /// The most special first, since the first entry that matches applies.
    package var inOrder: [HostPins] {
        enumerated().sorted { left, right in
            let a = HostPins.rank(left.element.patterns[0])
            let b = HostPins.rank(right.element.patterns[0])
            return (-a.labels, a.form, left.offset) < (-b.labels, b.form, right.offset)
        }.map(\.element)
    }

    /// A part of a configuration that says the same.
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

/// What the formats have in common.
enum PinFormat {
    /// A host of another program's file as a pattern.
    static func pattern(
        _ host: String, subdomains: Bool = false, at place: String
    ) throws(PinFormatError) -> String {
        let text = (subdomains ? "**." : "") + host.lowercasedASCII
        do {
            return try HostPattern(text).description
        } catch {
            throw PinFormatError(place, "\"\(host)\" is no host: \(error.problem)", expected: "")
        }
    }

    /// A digest of a key in base64, with or without `sha256/` before it, as a pin.
    static func pin(_ text: String, at place: String) throws(PinFormatError) -> String {
        let written = text.contains("/") && text.lowercasedASCII.hasPrefix("sha") ? text : nil
        let pin = written ?? "sha256/" + text
        do {
            guard case .literal(let pins) = try Pin.parse(pin), pins.count == 1,
                case .keyDigest(let digest)? = pins.first
            else {
                throw PinFormatError(
                    place, "\"\(text)\" is no pin of a key", expected: "one SHA-256 in base64")
            }
            return digest.keyPinText
        } catch let error as PinError {
            throw PinFormatError(place, "\"\(text)\" is no pin: \(error.problem)", expected: "")
        } catch {
            throw PinFormatError(place, "\(error)", expected: "")
        }
    }

    /// A day, from whose first second on something has expired.
    static func day(_ text: String, at place: String) throws(PinFormatError) -> Int64 {
        guard let seconds = CivilDate.secondsSince1970(rfc3339: text.utf8) else {
            throw PinFormatError(place, "\"\(text)\" is no date", expected: "as in 2027-06-01")
        }
        return seconds
    }
}
