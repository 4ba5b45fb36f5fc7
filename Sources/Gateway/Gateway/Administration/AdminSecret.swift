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

/// Who may read which page.
package struct AdminAccess: Sendable {
    /// Everyone may read every page.
    package static let open = AdminAccess(needsToken: false, token: nil)

    private let needsToken: Bool
    private let token: AdminSecret?

    /// - Parameters:
    ///   - needsToken: whether the metrics and the index page require the token.
    ///   - token: the token, or `nil` if no request can present one.
    package init(needsToken: Bool, token: AdminSecret?) {
        self.needsToken = needsToken
        self.token = token
    }

    /// Whether a page may be read with this `Authorization` value.
    func allows(_ page: AdminSite.Page, _ authorization: String?) -> Bool {
        switch page {
        // Devices being set up have no token, and nothing there is secret.
        case .health, .readiness, .authorityPEM, .authorityDER, .proxyConfiguration, .setup: true
        case .index, .metrics: !needsToken || token?.authorizes(authorization) ?? false
        }
    }
}
