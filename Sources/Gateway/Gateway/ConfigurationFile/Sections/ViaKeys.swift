import HTTPCore
import PinfoldConfiguration

extension Field {
    /// The gateway's name in messages.
    func gatewayName() -> GatewayName? {
        parsed(
            expected: "a name of at most \(GatewayName.maximumBytes) letters, digits and hyphens, "
                + "beginning with a letter"
        ) { GatewayName.isValid($0) ? GatewayName($0) : nil }
    }
}

extension SnapshotReader {
    /// Warns of what names the gateway where it has another name.
    func warnOfNames(_ top: Section?, _ snapshot: ConfigurationSnapshot) {
        guard snapshot.names != nil else { return }
        let elements = top?[.hosts]?.elements ?? []
        let place = top?[.via] ?? elements.lazy.compactMap { $0.key("via") }.first
        if snapshot.via == nil {
            place?.warn(
                "does not apply to replies that concern no host of the entry, such as those to "
                    + "requests that cannot be read; write via at the top level for these")
        }
        if snapshot.asksWho, snapshot.authentication.realm == AuthenticationConfiguration().realm {
            place?.warn(
                "does not change authentication.realm, which is "
                    + "\(quoted(snapshot.authentication.realm)) and is shown to clients")
        }
    }
}
