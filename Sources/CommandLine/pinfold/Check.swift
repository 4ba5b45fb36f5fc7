import ArgumentParser
import Clocks
import Gateway
import HTTPCore
import PinReporting
import PinfoldConfiguration
import PinfoldEngine

/// `pinfold check`: validates a configuration and prints what is in effect.
struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Validate a configuration and print the effective one.",
        discussion: """
            Prints the whole configuration with every default filled in, itself a valid \
            configuration, and exits with 0; what is valid but probably not meant is a warning on \
            standard error. When something is wrong, prints one line per error to standard error \
            and exits with 1.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() throws {
        let loaded = try options.loadOrExit()
        for warning in loaded.warnings { writeToStandardError("warning: \(warning)\n") }
        for line in Self.idlePins(of: loaded.snapshot, now: Clock.coarseWallSeconds()) {
            writeToStandardError("warning: \(line)\n")
        }
        writeToStandardOutput(loaded.snapshot.effectiveYAML())
    }
}

extension Check {
    /// Lines about pins that nothing has matched for a while, by what gateways with this
    /// configuration's `cache.path` have seen.
    ///
    /// - Parameter now: seconds since 1970.
    static func idlePins(of snapshot: ConfigurationSnapshot, now: Int64) -> [String] {
        guard !snapshot.pinsets.isEmpty else { return [] }
        let found: PinUseTable?
        do throws(ReportFolderError) {
            found = try PinUseFile.read(snapshot.cache.pinUseFile)
        } catch {
            return ["which pins have matched cannot be read: \(error)"]
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
                    : "normal for a backup; if it is not one, look whether it was mistyped"
                return "pinsets.\(pinset.name).pins: pin \(idle.index + 1) of pinset "
                    + "\(pinset.name) has matched nothing since \(date) (\(days) days), "
                    + "\(idle.text): \(advice)"
            }
        }
    }
}
