import ArgumentParser
import Gateway
import HTTPCore
import PinfoldClient
import PinfoldTLS
import Trust

/// The options by which commands find a running gateway's administrative address and may use it.
struct AdministrationOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            The configuration file of the gateway, for its administrative address and token. \
            Without this option and --admin, the address is 127.0.0.1:9090.
            """, valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp(
            """
            The administrative address, in place of the configured one: ADDRESS:PORT, unix:PATH, \
            http://HOST[:PORT] or https://HOST[:PORT].
            """, valueName: "address"))
    var admin: String?

    @OptionGroup var access: AdministrationAccess

    /// How long an answer is waited for, in seconds.
    var timeout: Double { access.timeout }

    /// The gateway that they name.
    /// - Parameter leastTimeout: the least time for which it waits for an answer, in milliseconds.
    func gateway(leastTimeout: Int64 = 0) throws -> RunningGateway {
        try access.gateway(config: config, admin: admin, leastTimeout: leastTimeout)
    }

    /// Verifies a listener as these options verify the administrative address.
    /// - Parameter isNamed: whether the user has named the listener. Another one has a certificate
    ///   that the configuration names, if that is known.
    func listenerContext(isNamed: Bool) throws -> TLSClientContext {
        try access.listenerContext(config: isNamed ? nil : config)
    }
}

/// The options by which commands may use an administrative address, wherever it is.
struct AdministrationAccess: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A file with the administrative token, in place of the configured one.",
            valueName: "file"), completion: .file())
    var tokenFile: String?

    @Option(
        name: .customLong("cacert"),
        help: ArgumentHelp(
            """
            Trust the certificates in this file. Without this option, a gateway that --config \
            names must present the certificate in its configuration, and any other one that the \
            system trusts; repeatable.
            """, valueName: "file"), completion: .file())
    var authorities: [String] = []

    @Option(
        help: ArgumentHelp(
            "The client's certificate, followed by its intermediates (PEM).", valueName: "file"),
        completion: .file())
    var cert: String?

    @Option(
        help: ArgumentHelp(
            "The certificate's private key (PEM); by default, it is in the same file.",
            valueName: "file"), completion: .file())
    var key: String?

    @Option(
        help: ArgumentHelp("Give up after this long without an answer.", valueName: "seconds"))
    var timeout = Self.defaultTimeout

    private static let defaultTimeout = 30.0

    /// Whether any of them was given.
    var isUsed: Bool {
        tokenFile != nil || !authorities.isEmpty || cert != nil || key != nil
            || timeout != Self.defaultTimeout
    }

    func validate() throws {
        guard timeout > 0, timeout <= 86_400 else {
            throw ValidationError("--timeout must be greater than 0 and at most 86400 seconds")
        }
        if key != nil, cert == nil { throw ValidationError("--key needs --cert") }
    }

    /// A gateway.
    ///
    /// - Parameters:
    ///   - config: its configuration file; `nil` for the default address.
    ///   - admin: its administrative address, in place of the configured one.
    ///   - leastTimeout: the least time for which it waits for an answer, in milliseconds.
    func gateway(
        config: String?, admin: String?, leastTimeout: Int64 = 0
    ) throws -> RunningGateway {
        var location = AdminLocation()
        if let config {
            do {
                location = try ConfigurationLoader(environment: .ofProcess())
                    .adminLocation(file: config)
            } catch {
                // All that is asked of the file is where the gateway is.
                if admin == nil { throw CommandError("\(error)") }
            }
        }
        let target = try admin.map { try Self.named($0) } ?? Self.target(location)
        let token = try (tokenFile ?? location.tokenFile).flatMap { path in
            // A gateway whose token is not for this user may be asked what everyone may know.
            tokenFile == nil ? try? Self.token(in: path) : try Self.token(in: path)
        }
        return RunningGateway(
            target: target, token: token, timeout: max(leastTimeout, Int64(timeout * 1000)),
            policy: try policy(presented: admin == nil ? location.certificates : []),
            certificate: try certificate(for: target))
    }

    private static func named(_ admin: String) throws -> RunningGateway.Target {
        guard let target = RunningGateway.Target(admin) else {
            throw CommandError(
                "--admin \(admin): expected ADDRESS:PORT, unix:PATH, http://HOST[:PORT] or "
                    + "https://HOST[:PORT]")
        }
        return target
    }

    private static func target(_ location: AdminLocation) throws -> RunningGateway.Target {
        switch location.address {
        case .unix(let socket): return .unix(socket.path)
        case .network(var endpoint):
            guard endpoint.port != 0 else {
                throw CommandError(
                    "the system chooses the port of admin.address; expected --admin with the one "
                        + "in the gateway's log")
            }
            // All addresses of the machine: this one is among them.
            if endpoint.address.unmapped.scope == .unspecified {
                endpoint.address = endpoint.address.family == .v4 ? .loopbackV4 : .loopbackV6
            }
            return .url("\(location.isSecure ? "https" : "http")://\(endpoint)")
        }
    }

    private static func token(in path: String) throws -> String {
        let text = String(decoding: try CommandFiles.read(path), as: UTF8.self)
        let token = text.split(whereSeparator: \.isWhitespace)
        guard token.count == 1 else {
            throw CommandError("\(path) has no token; expected one of visible ASCII characters")
        }
        return String(token[0])
    }

    /// - Parameter presented: The files of the certificates that the gateway presents.
    private func policy(presented: [String]) throws -> SecurityPolicy {
        var policy = SecurityPolicy()
        if !authorities.isEmpty {
            policy.trustsSystem = false
            for file in authorities {
                let found = try CertificatePin.pins(in: CommandFiles.read(file))
                policy.anchors += found.compactMap(\.certificate)
            }
            return policy
        }
        let known = presented.compactMap { try? CertificatePin.pins(in: CommandFiles.read($0)) }
        guard !known.isEmpty else { return policy }
        // Whoever has the key of one of these is the gateway, whatever its name.
        policy = SecurityPolicy(mode: .publicKey, pins: known.flatMap { $0 })
        policy.allowsInvalidCertificates = true
        policy.validatesDomainName = false
        return policy
    }

    private func certificate(for target: RunningGateway.Target) throws -> ClientCertificate? {
        guard let cert, let host = target.host else { return nil }
        return try ClientCertificate(
            certificates: CommandFiles.read(cert), key: CommandFiles.read(key ?? cert),
            hosts: [host])
    }
}

// A listener with TLS, for commands that are its clients.
extension AdministrationAccess {
    /// Verifies a listener as these options verify the administrative address.
    /// - Parameter config: the configuration file that names its certificate; `nil` if it is
    ///   another one's.
    func listenerContext(config: String?) throws -> TLSClientContext {
        let presented = config.flatMap {
            try? ConfigurationLoader(environment: .ofProcess()).listenerCertificates(file: $0)
        }
        let policy = try policy(presented: presented ?? [])
        var settings = TLSClientSettings()
        settings.policy = PinningPolicy(pinsets: policy.pinset.map { [$0] } ?? [])
        var roots: [RootSource] = policy.trustsSystem ? [.system] : []
        roots += policy.anchors.map { .file(name: "--cacert", contents: $0) }
        do {
            return try TLSClientContext(
                settings, roots: TrustRoots(roots), clientIdentity: try clientIdentity())
        } catch {
            throw CommandError("\(error)")
        }
    }

    private func clientIdentity() throws -> TLSClientIdentity? {
        guard let cert else { return nil }
        let (chain, secret) = (try CommandFiles.read(cert), try CommandFiles.read(key ?? cert))
        do throws(TLSIdentityError) {
            return try TLSClientIdentity(chainPEM: chain, keyPEM: secret)
        } catch {
            throw CommandError("--cert \(cert): \(error)")
        }
    }
}
