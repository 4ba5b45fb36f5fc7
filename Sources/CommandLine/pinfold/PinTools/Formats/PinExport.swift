import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// The pins of a host entry, reduced to what other programs support.
package struct ExportedPins: Hashable, Sendable {
    /// A host pattern, split into its parts.
    package struct Name: Hashable, Sendable {
        /// The domain without wildcard and port.
        package var domain: String
        /// Whether names below the domain are included.
        package var subdomains: Bool
        /// The pattern without port.
        package var pattern: String
    }

    package var pinset: String
    package var names: [Name]
    package var keys: [SHA256Digest]
    package var isEnforced: Bool
    /// When the pins are no longer enforced, in seconds since 1970.
    package var expires: Int64?
}

/// The formats that pins can be exported to.
package enum ExportFormat: String, CaseIterable, Sendable {
    case trustkit
    case android
    case okhttp
    case curl
    /// A DER file for each pinned certificate, as AFNetworking expects.
    case cer

    fileprivate var program: String {
        switch self {
        case .trustkit: "TrustKit"
        case .android: "Android"
        case .okhttp: "OkHttp"
        case .curl: "curl"
        case .cer: "AFNetworking"
        }
    }
}

/// A configuration's pins, converted for another program.
package struct PinExport: Sendable {
    package var hosts: [ExportedPins] = []
    /// Settings that the program does not support, where the result accepts no more servers.
    package var warnings: [String] = []

    /// Converts a configuration's pins.
    ///
    /// - Parameters:
    ///   - pinset: The only pinset to export, or `nil` for all that host entries name.
    /// - Throws: If the result would accept more servers, or refuse servers that the
    ///   configuration only reports.
    package init(
        _ configuration: ConfigurationSnapshot, pinset wanted: String?, for format: ExportFormat
    ) throws(PinFormatError) {
        if let wanted { try Self.requirePinset(wanted, configuration) }
        for (index, entry) in configuration.hosts.entries.enumerated() {
            let place = "hosts[\(index)] (\(entry.label))"
            let pinsets = entry.pinsets.map { configuration.pinsets[$0].pinset }
                .filter { wanted == nil || $0.name == wanted }
            let pinning = pinsets.filter { $0.mode != .none }
            if pinning.isEmpty {
                if !pinsets.isEmpty { warnings.append("\(place): exempt from pins, omitted") }
                continue
            }
            guard pinning.count == 1, let pinset = pinning.first else {
                throw PinFormatError(
                    place,
                    "all of its \(pinning.count) pinsets must pass, which \(format.program) "
                        + "does not support", expected: "--pinset with one of them")
            }
            var exported = ExportedPins(
                pinset: pinset.name, names: [], keys: try Self.keys(pinset, format),
                isEnforced: pinset.isEnforced)
            try settle(pinset, format, &exported)
            for pattern in entry.match { addName("\(pattern)", place, format, &exported) }
            if !exported.names.isEmpty { hosts.append(exported) }
        }
        if format == .okhttp { try requireApart() }
        guard !hosts.isEmpty else {
            throw PinFormatError(
                "hosts", "no entry has pins that can be written", expected: "an entry with pinsets")
        }
    }

    /// Checks that no patterns overlap: OkHttp accepts the pins of every pattern that matches, not
    /// only of the first.
    private func requireApart() throws(PinFormatError) {
        for special in hosts {
            for general in hosts where Set(general.keys) != Set(special.keys) {
                for name in special.names {
                    let other = general.names.first { HostPins.covers($0.pattern, name.pattern) }
                    guard let other else { continue }
                    throw PinFormatError(
                        "hosts",
                        "OkHttp would also accept the pins of \(other.pattern) for "
                            + "\(name.pattern)", expected: "--pinset with one of the two")
                }
            }
        }
    }

    private static func requirePinset(
        _ name: String, _ configuration: ConfigurationSnapshot
    ) throws(PinFormatError) {
        let names = configuration.pinsets.map(\.pinset.name)
        guard names.contains(name) else {
            throw PinFormatError(
                "--pinset",
                "there is no pinset \(name)" + (names.isEmpty ? ", because pinsets is empty" : ""),
                expected: names.isEmpty ? "" : "one of \(names.joined(separator: ", "))")
        }
    }

    /// The digests of a pinset's keys.
    private static func keys(
        _ pinset: Pinset, _ format: ExportFormat
    ) throws(PinFormatError) -> [SHA256Digest] {
        var keys: [SHA256Digest] = []
        for (index, pin) in pinset.pins.enumerated() {
            let place = "pinsets.\(pinset.name).pins[\(index)]"
            let key: SHA256Digest
            do {
                switch pin {
                case .keyDigest(let digest): key = digest
                case .publicKey(let der): key = try CertificateInspection.keyDigest(publicKey: der)
                case .certificate(let der):
                    key = try CertificateInspection(certificate: der).identity.key
                case .certificateFingerprint:
                    throw PinFormatError(
                        place,
                        "is a certificate's fingerprint, which \(format.program) does not "
                            + "support", expected: "the certificate's file, or its key's pin")
                }
            } catch let error as PinFormatError {
                throw error
            } catch {
                throw PinFormatError(place, "\(error)", expected: "")
            }
            if !keys.contains(key) { keys.append(key) }
        }
        return keys
    }

    /// Converts the pinset's other settings, as far as the program supports them.
    private mutating func settle(
        _ pinset: Pinset, _ format: ExportFormat, _ exported: inout ExportedPins
    ) throws(PinFormatError) {
        let place = "pinsets.\(pinset.name)"
        if !pinset.isEnforced, format != .trustkit {
            throw PinFormatError(
                place, "only reports failures, but \(format.program) would refuse servers",
                expected: "enforce: true, or --format trustkit")
        }
        if let expires = pinset.expires {
            let end = CivilDate.text(secondsSince1970: expires)
            if pinset.afterExpiry == .refuse && pinset.isEnforced {
                warnings.append("\(place): the expiry at \(end) (refuse) is omitted")
            } else if format == .trustkit || format == .android {
                exported.expires = expires
                if expires % 86_400 != 0 {
                    // Dates are whole days: round up, so that the pins do not expire too early.
                    exported.expires = expires + 86_400
                    warnings.append("\(place): \(end) is rounded up to the next day")
                }
            } else {
                warnings.append("\(place): the expiry at \(end) (report) is omitted")
            }
        }
        if pinset.mode == .certificate, format != .cer {
            warnings.append(
                "\(place): compares certificates, but \(format.program) compares their keys")
        }
        if pinset.allowInvalidCertificates || !pinset.validatesDomainName {
            warnings.append(
                "\(place): \(format.program) also requires a valid chain and a matching name")
        }
        if !pinset.anchors.isEmpty { warnings.append("\(place): its anchors are omitted") }
        if format == .curl {
            warnings.append("\(place): curl compares only the server's own key, not an issuer's")
        }
    }

    private mutating func addName(
        _ pattern: String, _ place: String, _ format: ExportFormat, _ exported: inout ExportedPins
    ) {
        guard pattern != "\(HostPattern.everything)" else {
            warnings.append(
                "\(place): ** is omitted, because \(format.program) has no such pattern")
            return
        }
        var bare = pattern
        if let parsed = try? HostPattern(pattern), let port = parsed.port {
            bare = parsed.atEveryPort.description
            warnings.append("\(place): \(pattern) applies to every port, not only to \(port)")
        }
        let domain = String(bare.drop { $0 == "*" || $0 == "." })
        let isWild = domain != bare
        let isOneLabel = isWild && !bare.hasPrefix("**")
        if isWild, format == .curl {
            warnings.append("\(place): \(bare) is omitted, because curl has no wildcards")
            return
        }
        if isOneLabel, format != .okhttp {
            warnings.append("\(place): \(bare) becomes \(domain) and all names below it")
        }
        let name = ExportedPins.Name(domain: domain, subdomains: isWild, pattern: bare)
        if !exported.names.contains(name) { exported.names.append(name) }
    }

    /// The pins in the program's format. Not for `.cer`.
    package func text(_ format: ExportFormat) -> String {
        switch format {
        case .trustkit: TrustKitFormat.write(hosts)
        case .android: AndroidFormat.write(hosts)
        case .okhttp: OkHttpFormat.write(hosts)
        case .curl, .cer: CurlFormat.write(hosts)
        }
    }

    /// The certificates among a configuration's pins, in DER, with file names for them.
    package static func certificates(
        _ configuration: ConfigurationSnapshot, pinset wanted: String?
    ) throws(PinFormatError) -> [(name: String, der: [UInt8])] {
        if let wanted { try requirePinset(wanted, configuration) }
        var files: [(name: String, der: [UInt8])] = []
        for pinset in configuration.pinsets.map(\.pinset)
        where wanted == nil || pinset.name == wanted {
            for (index, pin) in pinset.pins.enumerated() {
                guard case .certificate(let der) = pin else {
                    throw PinFormatError(
                        "pinsets.\(pinset.name).pins[\(index)]",
                        "is a digest or key, not a certificate",
                        expected: "certificate files, or another --format")
                }
                files.append(("\(pinset.name)-\(index).cer", der))
            }
        }
        guard !files.isEmpty else {
            throw PinFormatError("pinsets", "there are no pins", expected: "a pinset with pins")
        }
        return files
    }
}
