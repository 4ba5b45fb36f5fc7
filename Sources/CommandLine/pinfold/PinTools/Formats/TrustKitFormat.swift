import Documents
import HTTPCore

/// TrustKit's part of an Info.plist: `TSKConfiguration` with `TSKPinnedDomains`.
package enum TrustKitFormat {
    /// Reads the pins of a property list, XML or binary.
    package static func read(_ contents: [UInt8]) throws(PinFormatError) -> [HostPins] {
        var place = ""
        var root = try dictionary(try PinDocument.propertyList(contents), at: place)
        if let wrapped = root["TSKConfiguration"] {
            place = "TSKConfiguration"
            root = try dictionary(wrapped, at: place)
        }
        guard let domains = root["TSKPinnedDomains"] else {
            throw PinFormatError(
                place, "TSKPinnedDomains is missing",
                expected: "TSKConfiguration with TSKPinnedDomains")
        }
        place = (place.isEmpty ? "" : place + ".") + "TSKPinnedDomains"
        guard case .dictionary(let named) = domains, !named.members.isEmpty else {
            throw PinFormatError(place, "is \(domains.kind) or empty", expected: "domains")
        }
        var found: [HostPins] = []
        for member in named.members {
            found.append(try read(member.key, member.value, at: "\(place).\(member.key)"))
        }
        return found.inOrder
    }

    private static func dictionary(
        _ value: DocumentValue, at place: String
    ) throws(PinFormatError) -> DocumentDictionary {
        guard case .dictionary(let dictionary) = value else {
            throw PinFormatError(place, "is \(value.kind)", expected: "a dictionary")
        }
        return dictionary
    }

    private static func read(
        _ domain: String, _ value: DocumentValue, at place: String
    ) throws(PinFormatError) -> HostPins {
        let keys = try dictionary(value, at: place)
        func flag(_ name: String, _ byDefault: Bool) throws(PinFormatError) -> Bool {
            guard let value = keys[name] else { return byDefault }
            guard case .boolean(let flag) = value else {
                throw PinFormatError(
                    "\(place).\(name)", "is \(value.kind)", expected: "true or false")
            }
            return flag
        }
        let pattern = try PinFormat.pattern(
            domain, subdomains: try flag("TSKIncludeSubdomains", false), at: place)
        var entry = HostPins(patterns: [pattern], pins: [])
        if try flag("TSKExcludeSubdomainFromParentPolicy", false) { return entry }
        entry.isEnforced = try flag("TSKEnforcePinning", true)
        guard let hashes = keys["TSKPublicKeyHashes"], case .array(let values) = hashes,
            !values.isEmpty
        else {
            throw PinFormatError(
                "\(place).TSKPublicKeyHashes", "is missing, empty or not an array",
                expected: "an array of SHA-256 digests in base64")
        }
        for (index, value) in values.enumerated() {
            let name = "\(place).TSKPublicKeyHashes[\(index)]"
            guard case .string(let text) = value else {
                throw PinFormatError(name, "is \(value.kind)", expected: "a string")
            }
            entry.pins.append(try PinFormat.pin(text, at: name))
        }
        switch keys["TSKExpirationDate"] {
        case nil: break
        case .string(let text)?:
            entry.expires = try PinFormat.day(text, at: "\(place).TSKExpirationDate")
        case .date(let seconds)? where abs(seconds) < Double(1 << 40):
            entry.expires = Int64(seconds)
        case let value?:
            throw PinFormatError(
                "\(place).TSKExpirationDate", "is \(value.kind)", expected: "a date")
        }
        if keys["TSKReportUris"] != nil {
            entry.notes.append("failures were reported to TSKReportUris: see reportTo")
        }
        return entry
    }

    /// Writes the XML property list for these hosts.
    package static func write(_ hosts: [ExportedPins]) -> String {
        var lines = [
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
            "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "
                + "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">",
            "<plist version=\"1.0\">", "<dict>", "  <key>TSKConfiguration</key>", "  <dict>",
            "    <key>TSKPinnedDomains</key>", "    <dict>",
        ]
        for host in hosts {
            for name in host.names {
                lines += ["      <key>\(name.domain)</key>", "      <dict>"]
                lines += [
                    "        <key>TSKIncludeSubdomains</key>", "        <\(name.subdomains)/>",
                    "        <key>TSKEnforcePinning</key>", "        <\(host.isEnforced)/>",
                ]
                if let expires = host.expires {
                    let day = CivilDate.text(secondsSince1970: expires).prefix(10)
                    lines += [
                        "        <key>TSKExpirationDate</key>", "        <string>\(day)</string>",
                    ]
                }
                lines += ["        <key>TSKPublicKeyHashes</key>", "        <array>"]
                for key in host.keys {
                    lines.append("          <string>\(key.digestText)</string>")
                }
                lines += ["        </array>", "      </dict>"]
            }
        }
        lines += ["    </dict>", "  </dict>", "</dict>", "</plist>"]
        return lines.joined(separator: "\n") + "\n"
    }
}
