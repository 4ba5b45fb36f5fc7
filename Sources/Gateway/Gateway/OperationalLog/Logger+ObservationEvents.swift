import Logging
import PinObserving

extension Logger {
    /// Logs an event of what remembers the keys of servers.
    func log(_ event: ObservationEvent) {
        switch event {
        case .newKey(let new):
            var metadata: Metadata = [
                "host": "\(new.name.host)", "port": "\(new.name.port)",
                "key": "\(new.leaf.key.keyPinText)", "subject": "\(new.leaf.subject)",
                "issuer": "\(new.leaf.issuer)",
                "issuer_key": new.issuerIsKnown ? "known" : "new",
            ]
            if let address = new.address { metadata["server"] = "\(address)" }
            warning("a server without pins shows a key never seen before", metadata: metadata)
        case .setAside(let file, let detail):
            error(
                "the record of servers' keys was damaged; it was set aside, and a new one begun",
                metadata: ["file": "\(file)", "detail": "\(detail)"])
        case .unusable(let detail):
            error(
                "the record of servers' keys is kept in memory: its file cannot be used",
                metadata: ["detail": "\(detail)"])
        case .recovered:
            notice("the record of servers' keys is saved again")
        case .unreadable(let rows):
            warning(
                "rows of the record of servers' keys were ignored: they cannot be read",
                metadata: ["rows": "\(rows)"])
        }
    }
}
