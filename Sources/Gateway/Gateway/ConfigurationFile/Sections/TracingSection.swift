import HTTPCore
import PinfoldConfiguration

/// `tracing`.
extension TracingConfiguration {
    static var table: KeyTable<Self> {
        KeyTable(keys: [
            .choice("traceparent", \.traceparent),
            ConfigurationKey(
                "otlp", \.otlp, byDefault: "none", reading: { $1.collector() },
                text: { $0.map { YAMLText.quoted($0.collectorText) } ?? "none" }),
            ConfigurationKey(
                "sample", \.sampleMillionths, reading: { $1.share() }, text: Share.text(millionths:)
            ),
        ])
    }
}

extension SnapshotReader {
    /// Reads `tracing`: which traces exchanges belong to.
    func tracing(_ field: Field?) -> TracingConfiguration {
        let (tracing, section) = read(
            field, by: TracingConfiguration.table, over: TracingConfiguration())
        if let destination = tracing.otlp, destination.origin.scheme == .http,
            !destination.isOnThisMachine, let otlp = section?["otlp"]
        {
            otlp.warn(
                "sends spans in clear text: anyone on the network path can read, change or drop "
                    + "them; use https")
        }
        return tracing
    }
}

extension Field {
    /// The URL of a collector, or `none`. The path of the service for traces is added to it.
    fileprivate func collector() -> ReportDestination?? {
        let expected = "none, or the URL of a collector such as http://127.0.0.1:4318"
        if case .scalar("none", _) = node.content { return .some(nil) }
        let destination: ReportDestination? = parsed(expected: expected) { text in
            guard var destination = ReportDestination(url: text), !text.contains("?") else {
                return nil
            }
            let service = TracingConfiguration.tracesPath
            if !destination.path.hasSuffix(service) {
                if destination.path.hasSuffix("/") { destination.path.removeLast() }
                destination.path += service
            }
            return destination
        }
        return destination.map { .some($0) }
    }

    /// A share in percent, in millionths.
    func share() -> Int? {
        parsed(
            expected: "a share from 0% to 100%, with at most four decimals, such as 0.5%",
            Share.millionths)
    }
}

extension ReportDestination {
    /// As it is configured, without the path of the service for traces.
    fileprivate var collectorText: String {
        var base = self
        if base.path.hasSuffix(TracingConfiguration.tracesPath) {
            base.path.removeLast(TracingConfiguration.tracesPath.utf8.count)
        }
        return base.description
    }

    /// Whether its host is an address of the loopback interface, or a name of it.
    fileprivate var isOnThisMachine: Bool {
        if let address = IPAddress(origin.host) { return address.scope == .loopback }
        return origin.host == "localhost" || origin.host.hasSuffix(".localhost")
    }
}

/// Shares as text: `1%`, `0.25%`.
enum Share {
    /// The most decimals of a percentage.
    private static let decimals = 4

    /// Parses a share into millionths. The result is `nil` if it is malformed or over 100 %.
    static func millionths(_ text: String) -> Int? {
        guard text.hasSuffix("%") else { return nil }
        let parts = text.dropLast().split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = parts.first, (1...3).contains(whole.utf8.count), parts.count <= 2 else {
            return nil
        }
        let decimals = parts.count == 2 ? parts[1] : "0"
        let digits = whole + decimals
        guard (1...Self.decimals).contains(decimals.utf8.count),
            digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let number = Int(digits)
        else { return nil }
        let millionths = (decimals.utf8.count..<Self.decimals).reduce(number) { sum, _ in sum * 10 }
        return millionths <= TracingConfiguration.whole ? millionths : nil
    }

    /// The shortest exact text for a share.
    static func text(millionths: Int) -> String {
        let (whole, rest) = millionths.quotientAndRemainder(dividingBy: 10_000)
        guard rest > 0 else { return "\(whole)%" }
        var decimals = String(rest + 10_000).dropFirst()
        while decimals.hasSuffix("0") { decimals.removeLast() }
        return "\(whole).\(decimals)%"
    }
}
