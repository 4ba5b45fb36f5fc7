import CLinux
import Files

/// The files of a configuration, read together: the one that was named, and those that its key
/// `include` names.
///
/// Included files include no others: the one file shows which there are and in which order they
/// count, and there are no cycles.
struct SourceFiles {
    /// Included files at most.
    static let maximumFiles = 1000
    /// The maximum size of all files together, in bytes.
    static let maximumBytes = 16 << 20

    static let key = SectionName.include.rawValue

    /// The whole document, without `include`.
    let root: ConfigNode
    /// Whether the file names others, though there may be none.
    let hasIncludes: Bool
    let inputs: ConfigurationInputs

    /// Reads the files once all have been unchanged for a moment, since editors truncate a file
    /// before they write it, and several files may be written together.
    ///
    /// - Parameters:
    ///   - name: The configuration file's path, and its name in errors.
    ///   - text: The file's content, or `nil` to read it.
    ///   - pause: Waits for a number of milliseconds.
    init(
        _ name: String, text: [UInt8]? = nil, environment: ConfigurationEnvironment,
        pause: (Int64) -> Void = ConfigurationFiles.sleep
    ) throws(ConfigurationErrors) {
        var last = try Self.read(name, text, environment)
        if !last.isSettled {
            var attempts = 0
            while true {
                pause(ConfigurationFiles.quietMilliseconds)
                let next = try Self.read(name, text, environment)
                let isUnchanged = next.marks == last.marks
                last = next
                if isUnchanged { break }
                attempts += 1
                guard attempts < ConfigurationFiles.attempts else {
                    throw ConfigurationErrors(
                        errors: [Self.error(name, "keeps changing while it is read")],
                        inputs: last.inputs)
                }
            }
        }
        (root, hasIncludes, inputs) = try last.merged()
    }

    /// A file that has been read.
    struct Source {
        /// As in errors.
        let name: String
        let content: [UInt8]
        /// Unknown if the content was given.
        let version: ConfigurationFiles.Version?
    }

    /// The files as read at one time.
    fileprivate struct Reading {
        var validation: ConfigurationValidation
        var inputs = ConfigurationInputs()
        var sources: [Source] = []
        var main = ConfigNode(origin: .builtIn, content: .null)

        /// What shows whether anything has changed.
        var marks: [String] {
            sources.map { "\($0.name) \($0.version.map { "\($0)" } ?? "")" }
                + validation.sortedErrors.map(\.description)
        }

        /// Whether nothing was changing while it was read.
        var isSettled: Bool {
            validation.errors.isEmpty && sources.allSatisfy { $0.version?.isOld ?? true }
                && (sources.count == 1 || inputs.current() == inputs)
        }

        /// The document, of all files.
        func merged() throws(ConfigurationErrors) -> (ConfigNode, Bool, ConfigurationInputs) {
            var inputs = inputs
            inputs.files = sources.map(\.name)
            validation.files = inputs.files
            var nodes = 0
            var root = main
            do {
                root = try YAMLDocument.parse(
                    sources[0].content, name: sources[0].name, nodes: &nodes)
            } catch {
                validation.report(error)
            }
            if case .null = root.content, validation.errors.isEmpty {
                validation.report(SourceFiles.empty(sources[0].name))
            }
            let hasIncludes = root[SourceFiles.key].map(\.isListWithElements) ?? false
            if case .mapping(let entries) = root.content {
                let field = Field(node: root, path: "", validation: validation)
                _ = Section.distinct(
                    entries.filter { $0.key == SourceFiles.key }, in: field)
            }
            root = root.without(SourceFiles.key)
            let merge = ConfigurationMerge(validation: validation)
            for source in sources.dropFirst() {
                do throws(ConfigurationError) {
                    let node = try YAMLDocument.parse(
                        source.content, name: source.name, nodes: &nodes)
                    try SourceFiles.requireMapping(node, source.name)
                    merge.add(node, to: &root)
                } catch {
                    validation.report(error)
                }
            }
            let errors = validation.sortedErrors
            guard errors.isEmpty else {
                throw ConfigurationErrors(errors: errors, inputs: inputs)
            }
            return (root, hasIncludes, inputs)
        }
    }

    private static func error(_ name: String, _ problem: String) -> ConfigurationError {
        ConfigurationError(
            origin: .file(name: name, line: 0), key: "", problem: problem,
            expected: "a readable configuration file")
    }

    /// The error for a file without any keys. Such a file is probably still being written, or is
    /// not the intended one. Loading it would remove every listener, pinset and rule.
    fileprivate static func empty(_ name: String) -> ConfigurationError {
        ConfigurationError(
            origin: .file(name: name, line: 0), key: "", problem: "has no keys",
            expected: "at least one key; for the built-in defaults, omit --config or write {}")
    }

    fileprivate static func requireMapping(
        _ node: ConfigNode, _ name: String
    ) throws(ConfigurationError) {
        switch node.content {
        case .mapping: return
        case .null:
            throw ConfigurationError(
                origin: .file(name: name, line: 0), key: "", problem: "has no keys",
                expected: "at least one key, or {}")
        case .scalar, .sequence:
            throw ConfigurationError(
                origin: node.origin, key: "", problem: "is \(node.content.name)",
                expected: "a mapping, as in the file that includes it")
        }
    }

    // MARK: Reading

    /// Reads all files once. Errors in included files are recorded, others thrown.
    private static func read(
        _ name: String, _ text: [UInt8]?, _ environment: ConfigurationEnvironment
    ) throws(ConfigurationErrors) -> Reading {
        let path = ConfigurationFiles.absolute(name, in: environment.workingFolder)
        var reading = Reading(
            validation: ConfigurationValidation(
                environment: environment, folder: Folder.of(path)))
        if let text {
            reading.sources = [Source(name: name, content: text, version: nil)]
        } else {
            reading.inputs.note(path)
            do {
                let (content, version) = try ConfigurationFiles.readOnce(
                    path, limit: YAMLDocument.maximumBytes)
                reading.sources = [Source(name: name, content: content, version: version)]
            } catch {
                throw ConfigurationErrors(
                    errors: [Self.error(name, error.text)], inputs: reading.inputs)
            }
        }
        // Errors in the file itself are found again once it is complete.
        guard let main = try? YAMLDocument.parse(reading.sources[0].content, name: name) else {
            return reading
        }
        reading.main = main
        reading.readIncluded()
        return reading
    }
}

extension SourceFiles.Reading {
    private var name: String { sources[0].name }

    /// Reads the files that the key `include` names.
    fileprivate mutating func readIncluded() {
        guard let written = main[SourceFiles.key] else { return }
        var expansion = VariableExpansion(validation.environment.variables)
        let node = expansion.expand(written, path: SourceFiles.key)
        validation.add(expansion)
        let field = Field(node: node, path: SourceFiles.key, validation: validation)
        guard expansion.errors.isEmpty, let elements = field.list(of: "files and patterns") else {
            return
        }
        var bytes = sources[0].content.count
        for element in elements {
            guard let pattern = pattern(element), let matches = matches(of: pattern, element)
            else { continue }
            for match in matches {
                guard read(match, of: pattern, element, &bytes) else { return }
            }
        }
    }

    private func pattern(_ field: Field) -> PathPattern? {
        let text = field.parsed(expected: "a path, or a pattern such as conf.d/*.yaml") { text in
            text.isEmpty || text.utf8.contains(0) ? nil : text
        }
        guard let text else { return nil }
        guard text == "~" || text.hasPrefix("~/") else {
            return PathPattern(text, in: validation.folder(of: field.node.origin))
        }
        guard let home = validation.environment.homeFolder else {
            field.fail("has `~`, but HOME is not set", expected: "another path")
            return nil
        }
        return PathPattern(String(text.dropFirst(2)), in: home)
    }

    /// The paths that match, as written. A name that is no pattern matches itself.
    private mutating func matches(of pattern: PathPattern, _ field: Field) -> [String]? {
        guard pattern.isPattern else { return [pattern.text] }
        let most = SourceFiles.maximumFiles
        do throws(PathPatternError) {
            let found = try pattern.matches(most: most)
            inputs.matches[pattern] = found
            return found
        } catch {
            inputs.matches[pattern] = []
            switch error {
            case .unreadable(let error):
                field.fail(
                    "the folder \(quoted(path: error.path)) cannot be read: \(error.reason)",
                    expected: "a readable folder")
            case .tooMany:
                field.fail(
                    "matches more than \(most) files", expected: "at most \(most) files")
            }
            return nil
        }
    }

    /// Reads one file. Returns `false` if no more are read.
    private mutating func read(
        _ match: String, of pattern: PathPattern, _ field: Field, _ bytes: inout Int
    ) -> Bool {
        let path = ConfigurationFiles.absolute(pattern.path(of: match), in: "/")
        inputs.note(path)
        let shown = shown(match, of: pattern, path)
        do {
            let (content, version) = try ConfigurationFiles.readOnce(
                path, limit: YAMLDocument.maximumBytes, problem: FileOwnership.problem(of:))
            if let earlier = sources.first(where: { $0.version?.isSameFile(version) ?? false }) {
                field.fail(
                    "\(quoted(path: shown)) is the file \(quoted(path: earlier.name)), which is "
                        + "read already", expected: "each file once")
                return true
            }
            bytes += content.count
            guard bytes <= SourceFiles.maximumBytes, sources.count <= SourceFiles.maximumFiles
            else {
                field.fail(
                    "too much is included",
                    expected: "at most \(SourceFiles.maximumFiles) files, of together "
                        + "\(Quantity.text(bytes: SourceFiles.maximumBytes))")
                return false
            }
            sources.append(SourceFiles.Source(name: shown, content: content, version: version))
        } catch {
            field.fail(
                "\(quoted(path: shown)) \(error.text)",
                expected: error.isOfOwnership ? FileOwnership.expected : "a readable file")
        }
        return true
    }

    /// The name of an included file in errors: relative to what the file's own is relative to.
    private func shown(_ match: String, of pattern: PathPattern, _ path: String) -> String {
        guard !match.hasPrefix("/"), pattern.folder == validation.folder else { return path }
        let folder = Folder.of(name)
        return folder == "." && !name.hasPrefix("./") ? match : "\(folder)/\(match)"
    }
}

extension ConfigNode {
    fileprivate var isListWithElements: Bool {
        if case .sequence(let values) = content { !values.isEmpty } else { false }
    }
}
