import PinfoldConfiguration

/// `tunnel` and `intercept` of an element of `access.rules`.
extension AccessRule {
    static var tunnelKey: ConfigurationKey<Self> {
        ConfigurationKey(
            "tunnel", byDefault: "as in `hosts`",
            read: { reader, field, rule in
                guard let field, reader.mayDecideOnTunnels(rule, field) else { return }
                rule.tunnels.tunnel = field.choice()
            },
            text: { $0.tunnels.tunnel?.rawValue })
    }

    static var interceptKey: ConfigurationKey<Self> {
        ConfigurationKey(
            "intercept", byDefault: "as in `hosts`",
            read: { reader, field, rule in
                guard let field, reader.mayDecideOnTunnels(rule, field) else { return }
                rule.tunnels.intercept = field.choice()
            },
            text: { $0.tunnels.intercept?.rawValue })
    }
}

extension SnapshotReader {
    /// Whether a rule may say how tunnels are handled: if it allows CONNECT.
    fileprivate func mayDecideOnTunnels(_ rule: AccessRule, _ field: Field) -> Bool {
        guard case .allow = rule.action else {
            field.fail(
                "does not apply to action: \(rule.action.name)", expected: "action: allow")
            return false
        }
        guard rule.paths.isEmpty, rule.methods.isEmpty || rule.methods.contains("CONNECT") else {
            field.fail(
                "applies to no tunnel: the rule does not match CONNECT",
                expected: "no paths in the rule, and methods with CONNECT or none")
            return false
        }
        return true
    }

    /// Reports rules that require an authority if there is none.
    func checkInterception(
        _ element: Field, _ rule: AccessRule, _ snapshot: ConfigurationSnapshot
    ) {
        guard rule.tunnels.intercept == .always, snapshot.interception.authority == nil else {
            return
        }
        element.key("intercept")?.fail(
            "interception requires a certificate authority",
            expected: "interception.certificate and interception.key; `pinfold ca init` creates "
                + "them")
    }
}
