import HTTPCore
import PinfoldConfiguration
import PinfoldTLS
import Trust

extension TrustQuery {
    /// Applies a configuration's settings for the host: trust anchors, profile, CRLs and pinsets.
    ///
    /// - Parameters:
    ///   - configuration: The configuration.
    ///   - port: The server's port, since entries of `hosts` may name one.
    ///   - pinset: The only pinset to use, in place of those of the host's entry.
    /// - Throws: If there is no such pinset.
    package mutating func apply(
        _ configuration: ConfigurationSnapshot, port: UInt16 = 443, pinset name: String?
    ) throws(TrustQueryError) {
        let wanted = host.map(TrustVerifier.normalized) ?? ""
        let index = configuration.hostEntry(host: wanted.utf8.span, port: port)
        let entry = index.map { configuration.hosts.entries[$0] }
        let tls = entry?.tls ?? configuration.tls
        profile = tls.profile.map { ChosenProfile($0) } ?? .byDefault
        requiresStaple = tls.ocspStapling == .required
        revocationLists = tls.crls.flatMap(\.lists)
        transparency = tls.transparency.policy
        roots = tls.roots.map { source in
            switch source {
            case .system: .system
            case .file(let path, let certificates): .loaded(name: path, certificates)
            }
        }
        guard let name else {
            pinsets = entry?.pinsets.map { configuration.pinsets[$0].pinset } ?? []
            let bypass = configuration.pinBypass(
                host: wanted.utf8.span, entry: index, by: .verifiedTLS)
            bypassesPins = bypass != nil
            return
        }
        guard let found = configuration.pinsets.first(where: { $0.pinset.name == name }) else {
            let names = configuration.pinsets.map(\.pinset.name).sorted()
            throw TrustQueryError(
                "there is no pinset \(name); "
                    + (names.isEmpty
                        ? "pinsets is empty" : "expected one of \(names.joined(separator: ", "))"))
        }
        pinsets = [found.pinset]
    }
}
