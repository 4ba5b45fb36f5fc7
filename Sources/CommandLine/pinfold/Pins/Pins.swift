import ArgumentParser

/// `pinfold pin`: shows, imports and exports pins.
struct Pins: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Show the pins of servers and files; import and export pins.",
        subcommands: [PinShow.self, PinImport.self, PinExportCommand.self],
        defaultSubcommand: PinShow.self)
}
