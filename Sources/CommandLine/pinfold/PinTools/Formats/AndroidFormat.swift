import Documents
import HTTPCore
import Trust

/// Android's network security configuration (`res/xml/network_security_config.xml`).
package enum AndroidFormat {
    /// Elements that are allowed, but contain no pins.
    private static let others = ["trust-anchors", "base-config", "debug-overrides"]

    /// Reads the pins of a file. As on Android, the most specific `domain` applies to a host.
    package static func read(_ contents: [UInt8]) throws(PinFormatError) -> [HostPins] {
        let root = try PinDocument.xml(contents)
        guard root.name == "network-security-config" else {
            throw PinFormatError(
                root.place, "the root element is \(root.name)",
                expected: "network-security-config")
        }
        var found: [HostPins] = []
        for child in root.children {
            if child.name == "domain-config" {
                try read(child, inherited: nil, into: &found)
            } else if !others.contains(child.name) {
                throw unknown(child, in: root)
            }
        }
        // A host without pins only matters as an exemption from another pattern that matches it.
        let pinned = found.filter { !$0.pins.isEmpty }
        let kept = found.compactMap { one -> HostPins? in
            guard one.pins.isEmpty else { return one }
            var one = one
            one.patterns.removeAll { pattern in
                !pinned.contains { other in
                    other.patterns.contains { HostPins.covers($0, pattern) }
                }
            }
            return one.patterns.isEmpty ? nil : one
        }
        guard kept.contains(where: { !$0.pins.isEmpty }) else {
            throw PinFormatError(
                "", "the file pins no host", expected: "a domain-config with a pin-set")
        }
        // One entry per domain, so that the most specific one comes first.
        return kept.flatMap { one in
            one.patterns.map { pattern in
                var single = one
                single.patterns = [pattern]
                return single
            }
        }.inOrder
    }

    private static func unknown(_ element: XMLTree.Element, in parent: XMLTree.Element)
        -> PinFormatError
    {
        PinFormatError(
            element.place, "unknown element \(element.name) in \(parent.name)",
            expected: "domain, pin-set, trust-anchors or domain-config")
    }

    private struct PinSet {
        var pins: [String] = []
        var expires: Int64?
    }

    private static func read(
        _ config: XMLTree.Element, inherited: PinSet?, into found: inout [HostPins]
    ) throws(PinFormatError) {
        var patterns: [String] = []
        var set = inherited
        var notes: [String] = []
        var nested: [XMLTree.Element] = []
        if config.attribute("cleartextTrafficPermitted") == "true" {
            notes.append("clear text was permitted for this entry: see clearText")
        }
        for child in config.children {
            let place = child.place
            switch child.name {
            case "domain":
                let subdomains = child.attribute("includeSubdomains") ?? "false"
                guard ["true", "false"].contains(subdomains) else {
                    throw PinFormatError(
                        place, "includeSubdomains is \"\(subdomains)\"", expected: "true or false")
                }
                patterns.append(
                    try PinFormat.pattern(
                        child.trimmedText, subdomains: subdomains == "true", at: place))
            case "pin-set": set = try pinSet(child)
            case "domain-config": nested.append(child)
            case "trust-anchors":
                notes.append("this entry had trust anchors: see tls.roots and anchors")
            default: throw unknown(child, in: config)
            }
        }
        guard !patterns.isEmpty else {
            throw PinFormatError(
                config.place, "a domain-config without a domain", expected: "domain")
        }
        var entry = HostPins(patterns: patterns, pins: set?.pins ?? [])
        entry.expires = set?.expires
        entry.notes = notes
        found.append(entry)
        for one in nested { try read(one, inherited: set, into: &found) }
    }

    private static func pinSet(_ element: XMLTree.Element) throws(PinFormatError) -> PinSet {
        var set = PinSet()
        if let expiration = element.attribute("expiration") {
            set.expires = try PinFormat.day(expiration, at: element.place)
        }
        for child in element.children {
            let place = child.place
            guard child.name == "pin" else {
                throw PinFormatError(
                    place, "unknown element \(child.name) in pin-set", expected: "pin")
            }
            let digest = child.attribute("digest") ?? ""
            guard digest == "SHA-256" else {
                throw PinFormatError(place, "the digest is \"\(digest)\"", expected: "SHA-256")
            }
            set.pins.append(try PinFormat.pin(child.trimmedText, at: place))
        }
        return set
    }

    /// Writes the file for these hosts.
    package static func write(_ hosts: [ExportedPins]) -> String {
        var lines = [
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>", "<network-security-config>",
        ]
        for host in hosts {
            lines.append("    <domain-config>")
            for name in host.names {
                let subdomains = "includeSubdomains=\"\(name.subdomains)\""
                lines.append("        <domain \(subdomains)>\(name.domain)</domain>")
            }
            let end = host.expires.map {
                " expiration=\"\(CivilDate.text(secondsSince1970: $0).prefix(10))\""
            }
            lines.append("        <pin-set\(end ?? "")>")
            for key in host.keys {
                lines.append("            <pin digest=\"SHA-256\">\(key.digestText)</pin>")
            }
            lines += ["        </pin-set>", "    </domain-config>"]
        }
        return (lines + ["</network-security-config>"]).joined(separator: "\n") + "\n"
    }
}

extension SHA256Digest {
    /// The base64 text without the prefix.
    var digestText: String { String(keyPinText.dropFirst("sha256/".count)) }
}
