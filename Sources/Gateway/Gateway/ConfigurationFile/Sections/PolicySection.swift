import PinfoldConfiguration

/// `policy`.
extension PolicyConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            ConfigurationKey(
                "url", \.url, byDefault: "required without engine",
                reading: { $1.policyURL().map { .some($0) } },
                text: { $0.map { YAMLText.quoted("\($0)") } }),
            ConfigurationKey(
                "engine", readSection: { $0.readPlace(of: &$2, $1) },
                text: { $0.isFromEngine.description }),
            .required(
                "publicKeys", \.publicKeys, expected: "a list of public keys",
                reading: { $1.policyKeys() }, text: { YAMLText.list($0.map(\.description)) }),
            .milliseconds("interval", \.intervalMilliseconds, in: 1_000...86_400_000),
            .choice("afterExpiry", \.afterExpiry),
        ])
    }
}

extension SnapshotReader {
    /// Reads `policy`: where a policy comes from.
    func policy(_ field: Field?) -> PolicyConfiguration? {
        let (policy, section) = read(
            field, by: PolicyConfiguration.table, over: PolicyConfiguration())
        return section == nil ? nil : policy
    }

    /// Reads `engine`, and sees to it that the policy comes from one place.
    fileprivate func readPlace(of policy: inout PolicyConfiguration, _ section: Section?) {
        guard let section else { return }
        if let value = section["engine"]?.boolean() { policy.isFromEngine = value }
        guard policy.isFromEngine else {
            _ = section.required(
                "url",
                expected: "an https URL such as https://policy.example.com/pinfold, or engine: true"
            )
            return
        }
        section["url"]?.fail(
            "is written although the policy comes by way of the engine",
            expected: "either url or engine")
        policy.url = nil
    }

    /// Reports a policy that is to come by way of an engine that there is not.
    func checkPolicyEngine(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        guard snapshot.policy?.isFromEngine ?? false else { return }
        let isShared = snapshot.cache.isEnabled && snapshot.cache.shared != nil
        guard !isShared, let field else { return }
        (field.key("engine") ?? field).fail(
            "is set, but the gateway has no engine", expected: "cache.shared, or url")
    }

    /// Warns if a policy cannot be kept.
    func warnOfPolicyFolder(_ field: Field?, _ snapshot: ConfigurationSnapshot) {
        guard validation.environment.looksAtPaths, snapshot.policy != nil, let field,
            let problem = PathAccess.problemMaking(folder: snapshot.cache.path)
        else { return }
        field.warn(
            "\(problem): no policy survives a restart, after which an older one may be taken")
    }
}

extension Field {
    /// Only by TLS: it is signed, but who can answer in its place could keep it from arriving.
    fileprivate func policyURL() -> ReportDestination? {
        parsed(expected: "an https URL such as https://policy.example.com/pinfold.yaml") { text in
            guard let url = ReportDestination(url: text), url.origin.scheme == .https else {
                return nil
            }
            return url
        }
    }

    fileprivate func policyKeys() -> [PolicyPublicKey]? {
        let most = PolicyConfiguration.maximumKeys
        guard let elements = list(of: "public keys") else {
            if case .null = node.content {
                fail("has no value", expected: "a list of public keys")
            }
            return nil
        }
        guard (1...most).contains(elements.count) else {
            fail(
                elements.isEmpty ? "has no key" : "has \(elements.count) keys",
                expected: "1 to \(most) public keys")
            return nil
        }
        var keys: [PolicyPublicKey] = []
        for element in elements {
            let key: PolicyPublicKey? = element.parsed(
                expected: "ed25519: and the 32 bytes of a public key in base64, as `pinfold policy "
                    + "keygen` prints them"
            ) { PolicyPublicKey($0) }
            guard let key else { continue }
            if keys.contains(key) { element.fail("is listed twice", expected: "each key once") }
            keys.append(key)
        }
        return keys
    }
}
