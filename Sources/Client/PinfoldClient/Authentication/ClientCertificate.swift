import PinfoldConfiguration
import PinfoldTLS
import Trust

/// A certificate with which the session identifies itself to servers that request a client
/// certificate in the TLS handshake (RFC 8446 section 4.3.2).
///
/// Set it in ``SessionConfiguration/clientCertificates``, or return it in response to a challenge
/// (``AuthenticationChallenge/Method/clientCertificate``). In both cases, it is presented only to
/// servers that match ``hosts``.
public struct ClientCertificate: Sendable, Hashable {
    /// The maximum size of a file, in bytes.
    public static let maximumFileBytes = 1 << 20

    /// Patterns of the hosts that receive the certificate: `api.example.com`, `*.example.com` for
    /// exactly one more label, `**.example.com` for the domain and all its subdomains; each with an
    /// optional `:port`.
    public let hosts: [String]
    let patterns: [HostPattern]
    let identity: ClientIdentity

    /// Creates a client certificate from data in memory.
    ///
    /// - Parameters:
    ///   - certificates: The client's certificate in PEM, followed by the intermediate certificates
    ///     up to an authority that servers know.
    ///   - key: The private key in PEM, unencrypted.
    ///   - hosts: See ``hosts``; at least one.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidClientCertificate`` if
    ///   certificates or key cannot be parsed, the key does not belong to the certificate, or a
    ///   host pattern is invalid.
    public init(certificates: [UInt8], key: [UInt8], hosts: [String]) throws(ClientError) {
        try self.init(
            ClientIdentity(path: "", chain: certificates, keyPath: "", key: key), hosts: hosts)
    }

    /// Creates a client certificate from files, which are read before this returns.
    ///
    /// - Parameters:
    ///   - certificatePath: A file with the certificates, as for ``init(certificates:key:hosts:)``.
    ///   - keyPath: A file with the private key, or `nil` if the key is in the same file.
    ///   - hosts: See ``hosts``; at least one.
    /// - Throws: The errors of ``init(certificates:key:hosts:)``, and ``ClientError`` if a file
    ///   cannot be read.
    public init(
        certificatePath: String, keyPath: String? = nil, hosts: [String]
    ) throws(ClientError) {
        let keyPath = keyPath ?? certificatePath
        try self.init(
            ClientIdentity(
                path: certificatePath, chain: try Self.read(certificatePath), keyPath: keyPath,
                key: try Self.read(keyPath)), hosts: hosts)
    }

    private init(_ identity: ClientIdentity, hosts: [String]) throws(ClientError) {
        guard !hosts.isEmpty else {
            throw ClientError(
                .invalidClientCertificate, "the certificate has no hosts; expected at least one")
        }
        var patterns: [HostPattern] = []
        for host in hosts {
            do throws(HostPatternError) { patterns.append(try HostPattern(host)) } catch {
                throw ClientError(
                    .invalidClientCertificate, "the host pattern \(host): \(error.problem)",
                    underlying: error)
            }
        }
        LibraryLifetime.keepUntilExit()
        do throws(TLSIdentityError) {
            _ = try TLSClientIdentity(chainPEM: identity.chain, keyPEM: identity.key)
        } catch {
            let prefix = identity.path.isEmpty ? "" : "\(identity.path): "
            throw ClientError(
                .invalidClientCertificate, "\(prefix)\(error)", underlying: error)
        }
        self.hosts = hosts
        self.patterns = patterns
        self.identity = identity
    }

    private static func read(_ path: String) throws(ClientError) -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            let source = try FileSource(path)
            var part = [UInt8](repeating: 0, count: 65_536)
            while bytes.count <= maximumFileBytes {
                let count = try part.withUnsafeMutableBytes { try source.read(into: $0) }
                if count == 0 { return bytes }
                bytes += part[..<count]
            }
        } catch {
            throw ClientError(.invalidClientCertificate, "\(error)", underlying: error)
        }
        throw ClientError(
            .invalidClientCertificate, "\(path): more than \(maximumFileBytes) bytes")
    }

    /// Two are equal if they have the same hosts and the same certificate.
    public static func == (one: ClientCertificate, other: ClientCertificate) -> Bool {
        one.hosts == other.hosts && one.identity == other.identity
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(hosts)
        hasher.combine(identity.chain)
    }
}

/// The key is omitted, so that it does not appear in logs.
extension ClientCertificate: CustomStringConvertible, CustomReflectable {
    public var description: String {
        "ClientCertificate(\(hosts.joined(separator: ", ")))"
    }
    public var customMirror: Mirror { Mirror(self, children: ["hosts": hosts]) }
}
