import HTTPCore

/// The secret that gives access to the protected pages (`admin.tokenFile`).
package struct AdminSecret: Sendable {
    private let bytes: [UInt8]

    /// Creates the secret from these bytes; at least one.
    package init(_ bytes: [UInt8]) {
        precondition(!bytes.isEmpty)
        self.bytes = bytes
    }

    /// Whether an `Authorization` value is `Bearer` with this token. Takes the same time whichever
    /// part of the token is right.
    package func authorizes(_ authorization: String?) -> Bool {
        guard let authorization else { return false }
        let parts = authorization.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercasedASCII == "bearer" else { return false }
        let given = Array(parts[1].utf8.drop { $0 == 0x20 })
        guard given.count == bytes.count else { return false }
        var difference: UInt8 = 0
        for (one, other) in zip(given, bytes) { difference |= one ^ other }
        return difference == 0
    }
}

/// Who may use which page and resource.
package struct AdminAccess: Sendable {
    /// What is known of who asks, besides what the request says.
    package enum Proof: Sendable, Equatable {
        /// It may open the administrative Unix socket.
        case socket
        /// It has shown a certificate of one of `admin.tls.clientRoots`.
        case certificate
        /// It is a program on this machine.
        case loopback
        /// Nothing.
        case none
    }

    /// Everyone may read every page, and programs of this machine may use every resource.
    package static let open = AdminAccess(needsToken: false, token: nil, proof: .loopback)

    private let needsToken: Bool
    private let token: AdminSecret?
    private let proof: Proof

    /// - Parameters:
    ///   - needsToken: whether the metrics require the token.
    ///   - token: the token, or `nil` if no request can present one.
    ///   - proof: what is known of who asks.
    package init(needsToken: Bool, token: AdminSecret?, proof: Proof = .none) {
        self.needsToken = needsToken
        self.token = token
        self.proof = proof
    }

    /// Whether a page may be read with this `Authorization` value.
    func allows(_ page: AdminSite.Page, _ authorization: String?) -> Bool {
        switch page {
        // Devices being set up have no token, and nothing there is secret. The live page asks for
        // the token itself: a browser sends none to get it.
        case .index, .health, .readiness: true
        case .authorityPEM, .authorityDER, .proxyConfiguration, .setup: true
        case .metrics: allows(.reader, authorization)
        }
    }

    /// Whether a resource may be used with this `Authorization` value.
    ///
    /// An operator is who may open the Unix socket, shows a certificate, or has the token; a
    /// program on this machine is one only as long as there is no token.
    func allows(_ caller: AdminCaller, _ authorization: String?) -> Bool {
        let hasToken = token?.authorizes(authorization) ?? false
        switch caller {
        case .everyone: return true
        case .reader: return !needsToken || hasToken
        case .operator:
            switch proof {
            case .socket, .certificate: return true
            case .loopback: return token == nil || hasToken
            case .none: return hasToken
            }
        }
    }

    /// Whether who asks has proved to be an operator by more than being on this machine: what
    /// clients have sent, and who they are, is for nobody else.
    func isProven(_ authorization: String?) -> Bool {
        switch proof {
        case .socket, .certificate: true
        case .loopback, .none: token?.authorizes(authorization) ?? false
        }
    }

    /// Why a resource may not be used; `nil` if it may.
    func refusal(of resource: AdminResource, _ request: AdminRequest) -> AdminError? {
        guard !allows(resource.caller, request.authorization) else { return nil }
        guard token != nil else {
            return AdminError(
                403, "not-an-operator", "Not an operator",
                "without admin.tokenFile, \(resource.path) is only for clients on this machine, "
                    + "of a Unix socket, or with a certificate (admin.tls.clientRoots)")
        }
        return AdminError(
            401, "unauthorized", "Unauthorized",
            "\(resource.path) requires the token in admin.tokenFile",
            fields: [AdminResponse.Field("WWW-Authenticate", "Bearer realm=pinfold")])
    }
}
