import ArgumentParser
import ConfigurationFile

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
        writeToStandardOutput(loaded.snapshot.effectiveYAML())
    }
}
