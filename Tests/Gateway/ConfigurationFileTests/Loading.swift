import Foundation
import PinfoldConfiguration
import TestSupport

@testable import Gateway

/// An environment that does not depend on the machine.
let testEnvironment = ConfigurationEnvironment(
    homeFolder: "/home/someone", stateFolder: nil, workingFolder: "/srv", cores: 4)

/// Loads a text as the file `gateway.yaml` in a folder.
func load(
    _ text: String, folder: String = "/srv", overlay: CommandLineOverlay = CommandLineOverlay(),
    environment: ConfigurationEnvironment = testEnvironment
) throws -> ConfigurationSnapshot {
    try ConfigurationLoader(environment: environment)
        .load(text: Array(text.utf8), name: folder + "/gateway.yaml", overlay: overlay).snapshot
}

/// The warnings about a valid text, as lines without the folder.
func warnings(
    of text: String, folder: String = "", overlay: CommandLineOverlay = CommandLineOverlay()
) throws -> [String] {
    try ConfigurationLoader(environment: testEnvironment)
        .load(text: Array(text.utf8), name: folder + "gateway.yaml", overlay: overlay)
        .warnings.map(\.description)
}

/// The built-in defaults, with options on top.
func loadDefaults(
    overlay: CommandLineOverlay = CommandLineOverlay(),
    environment: ConfigurationEnvironment = testEnvironment
) throws -> ConfigurationSnapshot {
    try ConfigurationLoader(environment: environment).load(file: nil, overlay: overlay).snapshot
}

/// The errors of a text, as lines without the folder; empty if it loads.
func errors(
    of text: String, folder: String = "/srv", overlay: CommandLineOverlay = CommandLineOverlay(),
    environment: ConfigurationEnvironment = testEnvironment
) -> [String] {
    do {
        _ = try load(text, folder: folder, overlay: overlay, environment: environment)
        return []
    } catch let errors as ConfigurationErrors {
        return errors.errors.map {
            $0.description.replacingOccurrences(of: folder + "/gateway.yaml", with: "gateway.yaml")
        }
    } catch {
        return ["\(error)"]
    }
}

/// Runs a closure with a folder, which is removed afterwards.
func withTemporaryFolder<Result>(_ body: (String) throws -> Result) throws -> Result {
    let folder = TemporaryFolder()
    return try withExtendedLifetime(folder) { try body(folder.path) }
}

/// Writes a file in the folder.
func write(_ content: String, to name: String, in folder: String) throws {
    try content.write(toFile: folder + "/" + name, atomically: true, encoding: .utf8)
}

/// Creates a folder in the folder.
func makeFolder(_ name: String, in folder: String) throws {
    try FileManager.default.createDirectory(
        atPath: folder + "/" + name, withIntermediateDirectories: true)
}
