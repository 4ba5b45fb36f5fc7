import HTTPCore
import PinfoldConfiguration
import PinfoldTLS

/// `interception`.
extension InterceptionConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "certificate", byDefault: "none",
                readSection: { reader, section, interception in
                    interception.authority = section.flatMap { reader.authority($0) }
                },
                text: { $0.authority.map { YAMLText.quoted($0.certificatePath) } }),
            // Read together with its certificate.
            ConfigurationKey(
                "key", byDefault: "none", readSection: { _, _, _ in },
                text: { $0.authority.map { YAMLText.quoted($0.keyPath) } }),
            .choice("default", \.byDefault),
            .clientMinimum("minimum", \.minimum),
            .integer("maximumCertificates", \.maximumCertificates, in: 1...1_000_000),
            ConfigurationKey("rejections", \.rejections, table: RejectionRules.table),
        ])
    }
}

/// `interception.rejections`.
extension RejectionRules {
    fileprivate static var table: KeyTable<Self> {
        let day: Int64 = 86_400_000
        return KeyTable(keys: [
            .integer("alerts", \.alerts, in: 0...1_000),
            .integer("closes", \.closes, in: 0...1_000),
            .milliseconds("window", \.windowMilliseconds, in: 1...day),
            .milliseconds("period", \.periodMilliseconds, in: 1...30 * day),
        ])
    }
}

extension SnapshotReader {
    /// How many days before an authority expires a warning is given.
    private static let warningDays: Int64 = 30

    /// Reads `interception`, and reports hosts that require it if there is no authority.
    func interception(
        _ field: Field?, _ hosts: [HostEntry], in hostsField: Field?
    ) -> InterceptionConfiguration {
        let errorsBefore = validation.errors.count
        let (interception, section) = read(
            field, by: InterceptionConfiguration.table, over: InterceptionConfiguration())
        // With errors in the lists, entries and fields do not correspond.
        let elements = hostsField?.elements ?? []
        var wanting =
            elements.count == hosts.count
            ? zip(elements, hosts).compactMap { (element, entry) -> Field? in
                if entry.intercept == .always { return element.key("intercept") }
                return entry.tunnel == .inspect && entry.tls13Tunnel == .intercept
                    ? element.key("tls13Tunnel") : nil
            } : []
        if interception.byDefault == .always, let byDefault = section?["default"] {
            wanting.append(byDefault)
        }
        guard interception.authority == nil, validation.errors.count == errorsBefore else {
            return interception
        }
        for field in wanting {
            field.fail(
                "interception requires a certificate authority",
                expected: "interception.certificate and interception.key; `pinfold ca init` "
                    + "creates them")
        }
        return interception
    }

    /// Warns of settings of `interception` without effect: all of them without an authority, and
    /// the rules for clients that reject its certificates if no tunnel may pass instead.
    func warnOfIdleInterception(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        let interception = snapshot.interception
        let defaults = InterceptionConfiguration()
        let differing = [
            ("default", interception.byDefault != defaults.byDefault),
            ("minimum", interception.minimum != defaults.minimum),
            (
                "maximumCertificates",
                interception.maximumCertificates != defaults.maximumCertificates
            ),
            ("rejections", interception.rejections != defaults.rejections),
        ].filter(\.1).map(\.0)
        guard interception.authority != nil else {
            for key in differing {
                field?.key(key)?.warn(
                    "has no effect without a certificate authority; set interception.certificate "
                        + "and interception.key (`pinfold ca init` creates them)")
            }
            return
        }
        guard differing.contains("rejections"), !snapshot.mayGiveUpInterception else { return }
        field?.key("rejections")?.warn(
            "has no effect: interception ends for a client only if an entry of hosts is "
                + "intercepted and has tunnel: pass or inspect, and none has")
    }

    /// The authority of a section, or `nil` if it names none. Errors in the files are reported.
    fileprivate func authority(_ section: Section) -> InterceptionAuthority? {
        guard section["certificate"] != nil || section["key"] != nil else { return nil }
        let certificate = section.required("certificate", expected: "a certificate file")
        let key = section.required("key", expected: "the certificate's key file")
        guard let certificatePath = certificate?.filePath(), let keyPath = key?.filePath() else {
            return nil
        }
        for path in [certificatePath, keyPath] { validation.note(path) }
        do {
            let read = try CertificateAuthority.read(
                certificatePath: certificatePath, keyPath: keyPath,
                now: validation.environment.now)
            warnOfEnd(read.authority, certificate)
            if let exposure = read.exposure { key?.warn(exposure) }
            return InterceptionAuthority(
                certificatePath: certificatePath, keyPath: keyPath,
                certificatePEM: read.certificatePEM, keyPEM: read.keyPEM)
        } catch {
            switch error {
            case .certificate(let text):
                certificate?.fail(
                    text, expected: "a certificate authority, as created by `pinfold ca init`")
            case .key(let text):
                key?.fail(text, expected: "the key of the certificate authority")
            }
            return nil
        }
    }

    private func warnOfEnd(_ authority: CertificateAuthority, _ field: Field?) {
        let days = CivilDate.days(
            from: validation.environment.now, to: authority.inspection.notAfter)
        guard days < Self.warningDays else { return }
        field?.warn(
            "the certificate authority expires in \(days) days; `pinfold ca rotate` creates a "
                + "new one that its clients also accept")
    }
}
