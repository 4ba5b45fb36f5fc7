import PinfoldConfiguration
import Trust

/// `tls`.
extension UpstreamTLS {
    static var table: KeyTable<Self> {
        KeyTable(
            keys: [
                ConfigurationKey(
                    "minimum", \.minimum, reading: { $1.choice() },
                    text: { YAMLText.quoted($0.rawValue) }),
                ConfigurationKey(
                    "roots", \.roots, reading: { $0.roots($1) },
                    text: { roots in
                        let texts = roots.map { root in
                            switch root {
                            case .system: "system"
                            case .file(let path, _): YAMLText.quoted(path)
                            }
                        }
                        return "[\(texts.joined(separator: ", "))]"
                    }),
                ConfigurationKey(
                    "profile", \.profile, byDefault: "strict, relaxed for your own roots",
                    reading: { $1.choice(TrustProfile.self) }, text: { $0.map(\.rawValue) }),
                ConfigurationKey(
                    "certificateTransparency", \.transparency,
                    table: CertificateTransparency.table),
            ] + cipherKeys + revocationKeys)
    }
}

/// An element of `pinsets`.
extension PinsetEntry {
    static var table: KeyTable<Self> {
        let modes = PinningMode.allCases.map(\.rawValue).joined(separator: ", ")
        return KeyTable(
            keys: [
                .required(
                    "mode", \.pinset.mode, expected: "one of \(modes)",
                    reading: { $1.choice() }, text: { $0.rawValue }),
                ConfigurationKey(
                    "pins",
                    read: { reader, field, entry in
                        for pin in field?.boundedList(of: "pins") ?? [] {
                            reader.read(pin: pin, into: &entry)
                        }
                    },
                    text: { YAMLText.list($0.pinTexts) }),
                .boolean("allowInvalidCertificates", \.pinset.allowInvalidCertificates),
                .boolean("validatesDomainName", \.pinset.validatesDomainName),
                ConfigurationKey(
                    "anchors",
                    read: { reader, field, entry in
                        let files = field?.boundedList(of: "certificate files")
                        for anchor in files ?? [] {
                            guard
                                case .file(let path, let certificates)? = reader.rootsFile(anchor)
                            else { continue }
                            entry.anchorPaths.append(path)
                            entry.pinset.anchors += certificates
                        }
                    },
                    text: { YAMLText.list($0.anchorPaths) }),
                .boolean("enforce", \.pinset.isEnforced),
                ConfigurationKey(
                    "expires", \.pinset.expires, byDefault: "none",
                    reading: { .some($0.time($1)) },
                    text: { $0.map(SnapshotReader.text(time:)) }),
                ConfigurationKey(
                    "afterExpiry", byDefault: PinsetExpiry.refuse.rawValue,
                    read: { _, field, entry in
                        entry.pinset.afterExpiry = field?.choice() ?? entry.pinset.afterExpiry
                    },
                    text: { entry in
                        let pinset = entry.pinset
                        // If it has no effect, it is printed only if it was written.
                        let isOfUse = pinset.expires != nil && pinset.isEnforced
                        return isOfUse || pinset.afterExpiry == .report
                            ? pinset.afterExpiry.rawValue : nil
                    }),
                ConfigurationKey(
                    "reportTo", \.reportTo, byDefault: "none",
                    reading: { .some($0.reportDestination($1)) },
                    text: { $0.map { YAMLText.quoted("\($0)") } }),
            ])
    }
}

/// `pinsets`.
extension SnapshotReader {
    /// The maximum number of pinsets, and of pins in a pinset.
    static let maximumPins = 1_000

    /// Reads the pinsets. A pinset with errors stays in the list, so that references to it do not
    /// cause further errors.
    func pinsets(_ field: Field?) -> [PinsetEntry] {
        guard let field else { return [] }
        guard case .mapping(let entries) = field.node.content else {
            if case .null = field.node.content { return [] }
            field.fail(
                "is \(field.node.content.name)", expected: "a mapping of names to pinsets")
            return []
        }
        guard entries.count <= Self.maximumPins else {
            field.fail("has \(entries.count) pinsets", expected: "at most \(Self.maximumPins)")
            return []
        }
        return Section.distinct(entries, in: field).map { entry in
            let path = Section.path(field.path, entry.key)
            if !isName(entry.key) {
                validation.report(
                    entry.keyOrigin, path, "is not a valid pinset name",
                    expected: "1 to \(maximumNameBytes) letters, digits, `.`, `_` and `-`")
            }
            return pinset(
                named: entry.key,
                Field(node: entry.value, path: path, validation: validation))
        }
    }

    private func pinset(named name: String, _ field: Field) -> PinsetEntry {
        let errorsBefore = validation.errors.count
        let (entry, section) = read(
            field, by: PinsetEntry.table,
            over: PinsetEntry(pinset: Pinset(name: name, mode: .publicKey)))
        if section == nil, case .null = field.node.content {
            field.fail("is empty", expected: "a mapping with mode and pins")
            return entry
        }
        // The combination is checked only if each of its parts is valid.
        if validation.errors.count == errorsBefore, let problem = entry.pinset.configurationError {
            let key: String
            switch problem {
            case .pinsetWithoutPins, .keyPinInCertificateMode: key = "pins"
            case .hostNameWithoutPins: key = "allowInvalidCertificates"
            }
            (section?[key] ?? field).fail(problem.problem, expected: "")
        } else if validation.errors.count == errorsBefore, let section {
            warn(of: entry, section)
        }
        return entry
    }

    /// Adds the pins of one element of `pins` to the pinset.
    fileprivate func read(pin field: Field, into entry: inout PinsetEntry) {
        let expected = "sha256/BASE64, a certificate's fingerprint in hex, or a file"
        guard let text = field.text(expected: expected) else { return }
        var source = quoted(text)
        do {
            var pins: [Pin]
            switch try Pin.parse(text) {
            case .literal(let literal):
                pins = literal
                entry.pinTexts.append(text)
            case .file:
                guard let path = field.filePath(), let contents = field.contents(ofFile: path)
                else { return }
                source = quoted(path: path)
                pins = try Pin.decode(file: contents)
                entry.pinTexts.append(path)
            }
            if entry.pinset.mode == .certificate {
                let isCertificate = pins.allSatisfy {
                    switch $0 {
                    case .certificate, .certificateFingerprint: true
                    case .keyDigest, .publicKey: false
                    }
                }
                if !isCertificate {
                    field.fail(
                        "\(source) is a public key",
                        expected: "a certificate file or fingerprint, or mode: publicKey")
                }
            }
            entry.pinset.pins += pins
        } catch {
            field.fail("\(source) is not a pin: \(error.problem)", expected: "")
        }
    }

    fileprivate func roots(_ field: Field) -> [TrustRoots]? {
        guard let elements = field.boundedList(of: "`system` and certificate files") else {
            return nil
        }
        if elements.isEmpty {
            field.fail("has no trust anchors", expected: "`system` or certificate files")
        }
        return elements.compactMap { element in
            if case .scalar("system", _) = element.node.content { return .system }
            return rootsFile(element)
        }
    }

    /// Reads the trust anchors of a file.
    func rootsFile(_ field: Field) -> TrustRoots? {
        guard let path = field.filePath(), let contents = field.contents(ofFile: path) else {
            return nil
        }
        do {
            return .file(path: path, certificates: try Pin.decodeCertificates(file: contents))
        } catch {
            field.fail(
                "\(quoted(path: path)) is not a certificate file: \(error.problem)", expected: "")
            return nil
        }
    }
}
