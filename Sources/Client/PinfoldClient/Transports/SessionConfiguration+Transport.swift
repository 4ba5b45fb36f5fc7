extension SessionConfiguration {
    /// Checks that the session behind the transport, which evaluates the servers, does what this
    /// configuration says about them: a policy that nobody applies would be worse than none.
    func checkTransport() throws(ClientError) {
        guard let behind = transport?.sendingSession?.configuration else { return }
        func refuse(_ what: String) -> ClientError {
            ClientError(
                .invalidSecurityPolicy,
                "\(what) would have no effect: the transport sends the requests by another "
                    + "session, which evaluates the servers; expected the same in that session's "
                    + "configuration")
        }
        guard trustPolicies == behind.trustPolicies || hasPlainTrust else {
            throw refuse("the configuration's trustPolicies")
        }
        guard securityPolicy == behind.securityPolicy || securityPolicy == .default else {
            throw refuse("the configuration's securityPolicy")
        }
        guard minimumTLS != .tls13 || behind.minimumTLS == .tls13 else {
            throw refuse("the configuration's minimumTLS")
        }
        guard clientCertificates.allSatisfy({ behind.clientCertificates.contains($0) }) else {
            throw refuse("one of the configuration's clientCertificates")
        }
    }

    /// Whether servers are evaluated by the default policy only.
    private var hasPlainTrust: Bool { securityPolicy == .default && trustPolicies.rules.isEmpty }
}
