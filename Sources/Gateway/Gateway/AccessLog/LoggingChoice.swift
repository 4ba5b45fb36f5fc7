import PinfoldConfiguration
import PinfoldMetrics

/// What the access log says of an exchange, and of which: for a worker.
struct LoggingChoice {
    /// The rules; `nil` if every exchange has a line.
    private let sampling: AccessLogSampling?
    /// The fields of heads that lines tell; `nil` for none.
    let fields: HeadFields?
    /// Whether the heads of responses must be kept.
    let needsResponseHeads: Bool

    /// Every exchange has a line, which tells nothing of heads.
    init() { self.init(AccessLogConfiguration()) }

    init(_ configuration: AccessLogConfiguration) {
        let leavesOut = configuration.sampling.rules.contains {
            $0.shareMillionths < AccessLogSampling.whole
        }
        sampling = leavesOut ? configuration.sampling : nil
        fields = HeadFields(configuration.fields)
        needsResponseHeads = fields?.needsResponse ?? false
    }

    /// For how many exchanges, in millionths, an exchange's line stands; 0 if it has none.
    @inline(__always)
    func share(of record: ExchangeRecord, _ number: UInt64) -> Int {
        guard let sampling else { return AccessLogSampling.whole }
        return Self.share(of: record, number, by: sampling)
    }

    @inline(never)
    private static func share(
        of record: ExchangeRecord, _ number: UInt64, by sampling: AccessLogSampling
    ) -> Int {
        let share = sampling.share(
            status: record.status, durationMicroseconds: record.durationMicroseconds,
            hasReason: record.failure != nil)
        return AccessLogSampling.takes(exchange: number, share: share) ? share : 0
    }
}
