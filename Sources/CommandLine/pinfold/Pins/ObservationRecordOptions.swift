import ArgumentParser
import Gateway
import HTTPCore
import PinObservation
import PinObserving
import PinfoldConfiguration
import Trust

/// How commands find the record of observed servers.
struct ObservationRecordOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            """
            The gateway's configuration file: the record is beside its cache. Without this option \
            and --record, it is where the built-in defaults put it.
            """, valueName: "file"), completion: .file())
    var config: String?

    @Option(
        help: ArgumentHelp("The record, in place of the configured one.", valueName: "file"),
        completion: .file())
    var record: String?

    @Option(
        help: ArgumentHelp(
            "Only this host, or host and port; repeatable.", valueName: "host[:port]"))
    var host: [String] = []

    /// The configuration, or the built-in defaults.
    func configuration() throws -> ConfigurationSnapshot {
        do {
            return try ConfigurationSource(file: config, overlay: CommandLineOverlay()).load()
                .snapshot
        } catch {
            error.write()
            throw ExitCode(1)
        }
    }

    /// What is recorded of the hosts that are asked for, by name.
    ///
    /// - Throws: if the record cannot be read. One that does not exist is empty, if it is the
    ///   configured one.
    func hosts(_ configuration: ConfigurationSnapshot) throws -> [ObservedHost] {
        let path = record ?? configuration.cache.observedPinsFile
        let all: [ObservedHost]
        do throws(ObservationFileError) {
            let (entries, unreadable) = try ObservationFile(reading: path).hosts()
            if unreadable > 0 { writeWarning("\(path): \(unreadable) rows cannot be read") }
            all = entries.map(\.host)
        } catch {
            guard case .missing = error, record == nil else { throw CommandError("\(error)") }
            all = []
        }
        return all.filter { one in host.isEmpty || wanted.contains { $0.includes(one.name) } }
            .sorted { ($0.name.host, $0.name.port) < ($1.name.host, $1.name.port) }
    }

    /// A host that is asked for.
    struct Wanted {
        var host: String
        /// `nil` for every port.
        var port: UInt16?

        func includes(_ name: ObservedName) -> Bool {
            host == name.host && (port ?? name.port) == name.port
        }
    }

    var wanted: [Wanted] {
        host.compactMap { text in
            PeerAddress(text).map { peer in
                Wanted(host: peer.host, port: Self.hasPort(text) ? peer.port : nil)
            }
        }
    }

    private static func hasPort(_ text: String) -> Bool {
        if text.hasPrefix("[") { return text.contains("]:") }
        return text.utf8.count { $0 == UInt8(ascii: ":") } == 1
    }

    func validate() throws {
        for text in host where PeerAddress(text) == nil {
            throw ValidationError("--host \(text): expected a host, or a host and a port")
        }
    }
}

/// A period, as configurations have it: a whole number with a unit.
struct ObservationPeriod: ExpressibleByArgument {
    let seconds: Int64

    init?(argument: String) {
        let units: [(Character, Int64)] = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400)]
        guard let unit = units.first(where: { $0.0 == argument.last }),
            let number = Int64(argument.dropLast()), (0...36_500).contains(number)
        else { return nil }
        seconds = number * unit.1
    }

    init(days: Int64) { seconds = days * 86_400 }

    var defaultValueDescription: String {
        seconds % 86_400 == 0 ? "\(seconds / 86_400)d" : "\(seconds)s"
    }
}
