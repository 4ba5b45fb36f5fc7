import ArgumentParser

/// `pinfold pin`: what to pin.
struct Pins: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pin",
        abstract: "Show the pins of servers and files, and exchange pins with other programs.",
        subcommands: [PinShow.self, PinImport.self, PinExportCommand.self],
        defaultSubcommand: PinShow.self)
}
