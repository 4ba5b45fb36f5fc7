import PinfoldConfiguration
import PinfoldTLS
import Serialization
import Trust

/// What a session proves itself with to servers that ask for a client's certificate in the TLS
/// handshake (RFC 8446 section 4.3.2).
///
/// It is given when the session is made (``SessionConfiguration/clientCertificates``), or as the
/// answer to a challenge (``AuthenticationChallenge/Method/clientCertificate``). Which servers see
/// it is said by ``hosts`` in both cases: whoever asks for one and is none of them sees none.
public struct ClientCertificate: Sendable, Hashable {
    /// Bytes of a file that is read.
    public static let maximumFileBytes = 1 << 20

    /// Patterns of the hosts that it is shown to: `api.example.com`, `*.example.com` for one label
    /// more, `**.example.com` for the domain and all below it, each with a `:port` or for all.
    public let hosts: [String]
    let patterns: [HostPattern]
    let identity: ClientIdentity

    /// A certificate and its key in memory.
    ///
    /// - Parameters:
    ///   - certificates: The client's certificate in PEM, then those that lead to the authority
    ///     that servers know.
    ///   - key: The private key in PEM, not encrypted.
    ///   - hosts: See ``hosts``; at least one.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidClientCertificate`` where one of
    ///   the two cannot be read, where the key is another certificate's, and for what is no pattern
    ///   of hosts.
    public init(certificates: [UInt8], key: [UInt8], hosts: [String]) throws(ClientError) {
        try self.init(
            ClientIdentity(path: "", chain: certificates, keyPath: "", key: key), hosts: hosts)
    }

    /// A certificate and its key in files, which are read before this returns.
    ///
    /// - Parameters:
    ///   - certificatePath: A file with what the other initializer calls `certificates`.
    ///   - keyPath: A file with the private key; nil: it is in the same file.
    ///   - hosts: See ``hosts``; at least one.
    /// - Throws: As the other initializer, and where a file cannot be read.
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
                .invalidClientCertificate, "the certificate is for no host; expected one at least")
        }
        var patterns: [HostPattern] = []
        for host in hosts {
            do throws(HostPatternError) { patterns.append(try HostPattern(host)) } catch {
                throw ClientError(
                    .invalidClientCertificate, "the host pattern \(host): \(error.problem)",
                    underlying: error)
            }
        }
        LibraryLifetime.lastUntilExit()
        do throws(TLSIdentityError) {
            _ = try TLSClientIdentity(chainPEM: identity.chain, keyPEM: identity.key)
        } catch {
            let place = identity.path.isEmpty ? "" : "\(identity.path): "
            throw ClientError(
                .invalidClientCertificate, "\(place)\(error)", underlying: error)
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

    /// Equal: shown to the same hosts, and the same certificate.
    public static func == (one: ClientCertificate, other: ClientCertificate) -> Bool {
        one.hosts == other.hosts && one.identity == other.identity
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(hosts)
        hasher.combine(identity.chain)
    }
}

/// The key is left out, so that it gets into no log.
extension ClientCertificate: CustomStringConvertible, CustomReflectable {
    public var description: String {
        "ClientCertificate(\(hosts.joined(separator: ", ")))"
    }
    public var customMirror: Mirror { Mirror(self, children: ["hosts": hosts]) }
}
