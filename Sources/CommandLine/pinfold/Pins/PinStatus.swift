import ArgumentParser
import Clocks
import Gateway
import HTTPCore
import PinObservation
import PinReporting
import PinfoldConfiguration
import PinfoldTLS
import Trust

/// `pinfold pin status`.
struct PinStatus: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show how near each pinset is to refusing its servers.",
        discussion: """
            Compares the pinsets of a configuration with what is recorded beside its cache: when \
            pins have matched, and what observed servers show. The gateway need not run. Exits \
            with 1 if a pinset is critical or the records cannot be read.
            """)

    @OptionGroup var options: ObservationRecordOptions

    @Flag(help: "Print one JSON object per pinset and line.")
    var json = false

    func run() throws {
        let configuration = try options.configuration()
        let hosts = try options.hosts(configuration)
        let use: PinUseTable?
        do throws(ReportFolderError) {
            use = try PinUseFile.read(configuration.cache.pinUseFile)
        } catch {
            throw CommandError("the record of matched pins cannot be read: \(error)")
        }
        let outlooks = try Self.outlooks(
            of: configuration, hosts, use, now: Clock.wallSeconds())
        if outlooks.isEmpty, !json { writeWarning("the configuration has no pinsets") }
        writeToStandardOutput(
            json
                ? outlooks.map { Self.json($0) + "\n" }.joined()
                : outlooks.map(Self.text).joined())
        if outlooks.contains(where: { $0.level == .critical }) { throw ExitCode(1) }
    }

    /// The outlook of each pinset that compares pins.
    ///
    /// - Parameters:
    ///   - hosts: what is recorded of observed servers.
    ///   - use: when pins have matched; `nil` if nothing is recorded.
    ///   - now: seconds since 1970.
    static func outlooks(
        of configuration: ConfigurationSnapshot, _ hosts: [ObservedHost], _ use: PinUseTable?,
        now: Int64
    ) throws -> [PinsetOutlook] {
        try configuration.pinsets.enumerated().compactMap { index, entry in
            let pinset = entry.pinset
            guard pinset.mode != .none else { return nil }
            let keys = try TrustVerifier.pinTexts(of: pinset).compactMap { text in
                guard pinset.mode == .publicKey,
                    case .literal(let pins)? = try? Pin.parse(text),
                    case .keyDigest(let digest)? = pins.first
                else { return SHA256Digest?.none }
                return digest
            }
            let applying = hosts.filter { host in
                configuration.hostEntry(host: host.name.host.utf8.span, port: host.name.port)
                    .map { configuration.hosts.entries[$0].pinsets.contains(index) } ?? false
            }
            let subject = PinsetOutlook.Subject(
                name: pinset.name, keys: keys, pins: pinset.pins.count,
                isEnforced: pinset.isEnforced, ends: pinset.ends,
                hasMatched: use?.hasMatched(pinset.name))
            return PinsetOutlook(subject, hosts: applying, now: now)
        }
    }

    private static func text(_ outlook: PinsetOutlook) -> String {
        let lines = outlook.concerns.map { "  \($0.level.rawValue): \($0)\n" }
        return "\(outlook.name): \(outlook.level?.rawValue ?? "in order")\n" + lines.joined()
    }

    private static func json(_ outlook: PinsetOutlook) -> String {
        var object = JSONObject()
        object.add("pinset", outlook.name)
        object.add("level", outlook.level?.rawValue ?? "none")
        object.add(
            "concerns",
            outlook.concerns.map { concern in
                var object = JSONObject()
                object.add("level", concern.level.rawValue)
                object.add("concern", concern.token)
                object.add("text", "\(concern)")
                return object
            })
        return object.text
    }
}
