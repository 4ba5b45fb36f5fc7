import PinfoldConfiguration

/// A signed policy that a configuration is read with.
package struct PolicyDocument: Sendable, Equatable {
    /// How it is called in errors: its URL or its file.
    package var name: String
    /// The whole file.
    package var bytes: [UInt8]
    /// Whether somebody named it, who then expects the configuration to have a `policy`.
    package var isRequired: Bool

    package init(name: String, bytes: [UInt8], isRequired: Bool = false) {
        (self.name, self.bytes, self.isRequired) = (name, bytes, isRequired)
    }

    /// Reads a file.
    package init(file path: String) throws(ConfigurationErrors) {
        do throws(ConfigurationFiles.ReadError) {
            let bytes = try ConfigurationFiles.read(path, limit: PolicyEnvelope.maximumBytes)
            self.init(name: path, bytes: bytes, isRequired: true)
        } catch {
            throw ConfigurationErrors(errors: [
                ConfigurationError(
                    origin: .file(name: path, line: 0), key: "", problem: error.text,
                    expected: "a readable policy")
            ])
        }
    }
}

/// What a configuration was made of, without its policy: another one can be added to it without
/// the configuration's own files being read again.
package final class LocalConfiguration: Sendable {
    /// The document, with the values of variables and the command line's options.
    let root: ConfigNode
    /// Where it was read.
    let environment: ConfigurationEnvironment
    /// The absolute path of the folder of the file that was named.
    let folder: String
    /// The names of the files.
    let files: [String]
    /// What was read, and what it says by itself.
    package let loaded: LoadedConfiguration

    init(
        root: ConfigNode, environment: ConfigurationEnvironment, folder: String, files: [String],
        loaded: LoadedConfiguration
    ) {
        self.root = root
        self.environment = environment
        self.folder = folder
        self.files = files
        self.loaded = loaded
    }
}

/// What of a document is being read is a policy's, and how far that may go.
struct PolicyReading {
    /// The file's name in positions.
    let file: String
    let narrowing: PolicyNarrowing
    /// What entries begin as.
    let base: HostEntry

    init(file: String, _ narrowing: PolicyNarrowing) {
        (self.file, self.narrowing, base) = (file, narrowing, narrowing.base)
    }

    /// Whether something was written in the policy.
    func wrote(_ node: ConfigNode) -> Bool { node.origin.file == file }
}

extension PolicyDocument {
    /// What keeps a file from being a policy of any gateway, whatever its configuration: it is no
    /// YAML, or has keys that none may have. Signatures are not looked at.
    package static func errors(in text: [UInt8], name: String) -> [ConfigurationError] {
        let validation = ConfigurationValidation(
            environment: ConfigurationEnvironment(
                homeFolder: nil, stateFolder: nil, workingFolder: "/", cores: 1), folder: "/")
        validation.files = [name]
        do throws(ConfigurationError) {
            PolicyTree(validation: validation).check(
                try YAMLDocument.parse(text, name: name))
        } catch {
            validation.report(error)
        }
        return validation.sortedErrors
    }
}
