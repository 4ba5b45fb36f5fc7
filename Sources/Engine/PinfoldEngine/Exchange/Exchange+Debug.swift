import CachePolicy
import HTTPCore
import Logging
import PinfoldMetrics

// What each phase decided, at log level debug: one line per decision, identified by the exchange's
// id.
extension Exchange {
    /// Logs a decision. `metadata` is evaluated at that level only; otherwise this is a single
    /// branch.
    @inline(__always)
    func debug(_ decision: StaticString, _ metadata: @autoclosure () -> Logger.Metadata) {
        guard environment.debugs else { return }
        log(decision, metadata())
    }

    @inline(never)
    private func log(_ decision: StaticString, _ metadata: Logger.Metadata) {
        var metadata = metadata
        metadata["id"] = "\(idText)"
        environment.shared.logger.debug("\(decision)", metadata: metadata)
    }

    /// Logs which host entry applies to the request.
    @inline(__always)
    func debugRoute() { if environment.debugs { logRoute() } }

    @inline(never)
    private func logRoute() {
        log(
            "routed",
            [
                "listener": "\(ingress?.name ?? "")",
                "entry": "\(environment.shared.labels.name(host: report.hostLabel))",
                "host": "\(String(decoding: origin?.authority ?? [], as: UTF8.self))",
                "tls": "\(origin?.tls != nil)",
            ])
    }

    /// Logs whether the response is stored.
    func debugStore(_ isStored: Bool) {
        debug("store", ["decision": "\(isStored ? "stored" : "\(storing.refusal?.token ?? "no")")"])
    }

    /// Logs how the exchange ended.
    @inline(__always)
    func debugEnd(_ microseconds: UInt64, at time: Int64) {
        if environment.debugs { logEnd(microseconds, at: time) }
    }

    @inline(never)
    private func logEnd(_ microseconds: UInt64, at time: Int64) {
        var metadata: Logger.Metadata = [
            "status": "\(report.status)", "cache": "\(report.cacheResult.label)",
            "reason": "\(remarks.fault?.reason.token ?? "")",
            "duration": "\(microseconds)us",
        ]
        let phases = self.phases(waits, at: time, of: microseconds)
        for phase in Phase.allCases {
            if let took = phases[phase] { metadata["\(phase.label)"] = "\(took)us" }
        }
        log("ended", metadata)
    }
}

extension CacheDecision {
    /// The decision in the log: `hit`, the reason for serving a stale response, or why the request
    /// is forwarded.
    var logToken: StaticString {
        switch self {
        case .hit(let hit): hit.stale?.token ?? "hit"
        case .validate(let validation): validation.reason.token
        case .forward(let reason), .gatewayTimeout(let reason): reason.token
        }
    }
}

extension Environment {
    /// Logs that a server passed verification and its pinsets.
    func debugTrusted(_ origin: Origin, _ server: Endpoint) {
        let pinsets = origin.policy.pinsets(entryIndex: origin.entryIndex)
        let names = pinsets.map { shared.labels.pinsetSnapshot[$0] }
        shared.logger.debug(
            "server trusted",
            metadata: [
                "host": "\(origin.key.host)", "server": "\(server)",
                "pinsets": "\(names.joined(separator: ","))",
            ])
    }

    /// Logs an event of a connection at log level trace; otherwise this is a single branch.
    @inline(__always)
    package func trace(_ event: StaticString, _ metadata: @autoclosure () -> Logger.Metadata) {
        guard traces else { return }
        shared.logger.trace("\(event)", metadata: metadata())
    }
}
