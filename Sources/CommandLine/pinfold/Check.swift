import ArgumentParser
import Clocks
import Gateway
import HTTPCore
import PinReporting
import PinfoldConfiguration
import PinfoldEngine

/// `pinfold check`: validates a configuration and prints the one in effect.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Validate a configuration and print it with all defaults.",
        discussion: """
            Prints the complete configuration with all defaults, which is itself a valid \
            configuration, and in comments at its end what is reached without the server being \
            verified, the rules of access and, if it has `include`, the files that were read; \
            exits with 0. In place of the value of an environment variable it prints `${NAME}`. \
            Settings that are valid but probably not intended cause warnings on standard error. \
            If the configuration is invalid, prints one line for each error to standard error and \
            exits with 1; with --strict, warnings are errors.
            """)

    @Flag(help: "Exit with 1 if there is a warning, too.")
    var strict = false

    @Flag(help: "Print nothing but warnings and errors.")
    var quiet = false

    @OptionGroup var options: ConfigurationOptions
    @OptionGroup var policyFile: PolicyFileOption

    func run() throws {
        let loaded = try options.loadOrExit(policy: policyFile.policy)
        var warnings = loaded.warnings.map { "\($0)" }
        let variables = loaded.snapshot.variables
        warnings += Self.idlePins(of: loaded.snapshot, now: Clock.wallSeconds())
            .map { variables.concealed(in: $0) }
        let summary = AccessSummary(of: loaded.snapshot)
        if let warning = summary.warning { warnings.append(warning) }
        for warning in warnings {
            if strict { writeError(warning) } else { writeWarning(warning) }
        }
        if strict, !warnings.isEmpty { throw ExitCode(1) }
        if quiet { return }
        var comments = summary.lines
        if loaded.hasIncludes {
            comments.append("Read, in this order: \(loaded.inputs.files.joined(separator: ", "))")
        }
        writeToStandardOutput(
            loaded.snapshot.effectiveYAML()
                + comments.map { "# \(variables.concealed(in: $0))\n" }.joined())
    }
}

extension Check {
    /// Warnings about pins that have matched nothing for a while, according to the records that
    /// gateways keep below this configuration's `cache.path`.
    ///
    /// - Parameter now: The current time, in seconds since 1970.
    static func idlePins(of snapshot: ConfigurationSnapshot, now: Int64) -> [String] {
        guard !snapshot.pinsets.isEmpty else { return [] }
        let found: PinUseTable?
        do throws(ReportFolderError) {
            found = try PinUseFile.read(snapshot.cache.pinUseFile)
        } catch {
            return ["the record of matched pins cannot be read: \(error)"]
        }
        guard let table = found else { return [] }
        return snapshot.pinsets.flatMap { entry -> [String] in
            let pinset = entry.pinset
            guard pinset.mode != .none else { return [] }
            let pins = pinset.distinguishedPins
            return table.idlePins(of: pinset.name, pins: pins, now: now).map { idle in
                let date = CivilDate.text(secondsSince1970: idle.since).prefix(10)
                let days = (now - idle.since) / 86_400
                let advice =
                    idle.hasMatched
                    ? "its key may no longer be in use"
                    : "normal for a backup pin; otherwise, check it for typing errors"
                return "pinsets.\(pinset.name).pins: pin \(idle.index + 1) of pinset "
                    + "\(pinset.name) has matched nothing since \(date) (\(days) days), "
                    + "\(idle.text): \(advice)"
            }
        }
    }
}
