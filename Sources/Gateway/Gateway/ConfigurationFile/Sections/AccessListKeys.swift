import AccessPolicy
import PinfoldConfiguration

/// A list of `access.lists`.
extension AccessList {
    static var table: KeyTable<Self> {
        let formats = DomainListFormat.allCases.map(\.rawValue)
        return KeyTable(keys: [
            .required(
                "files", \.files, expected: "a list of files",
                reading: { $0.listFiles($1) }, text: { YAMLText.list($0) }),
            ConfigurationKey(
                "format", \.format,
                reading: { _, field in
                    field.parsed(
                        expected: "one of \(formats.joined(separator: ", "))",
                        meant: { NearestKey.nearest(to: $0, among: formats) },
                        { DomainListFormat(rawValue: $0) })
                }, text: { $0.rawValue }),
        ])
    }

    /// What was found in its files, as a comment.
    fileprivate var note: String {
        func count(_ number: Int, _ what: String) -> String {
            "\(number) \(what)\(number == 1 ? "" : "s")"
        }
        let formats = formatsFound.map(\.rawValue)
        let counts = [count(domains.nameCount, "name"), count(domains.networkCount, "network")]
        return (counts + formats).joined(separator: ", ")
    }
}

/// `lists` of `access`.
extension AccessConfiguration {
    static var listsKey: ConfigurationKey<Self> {
        var key = ConfigurationKey<Self>(
            "lists",
            read: { reader, field, access in access.lists = reader.accessLists(field) },
            // With any, they are printed below the key.
            text: { _ in "{}" })
        key.block = { yaml, level, access in
            for list in access.lists {
                let keys = AccessList.table.flow(list) ?? "{}"
                yaml.line(level, "\(YAMLText.quoted(list.name)): \(keys)  # \(list.note)")
            }
        }
        key.isBlock = { !$0.lists.isEmpty }
        let described = key.described
        key.described = { access in
            described(access)
                + AccessList.table.described(AccessList(name: "")).map {
                    $0.within("lists.NAME")
                }
        }
        return key
    }
}

extension SnapshotReader {
    /// The maximum number of lists, and of files of a list.
    static let maximumLists = 1_000

    fileprivate func accessLists(_ field: Field?) -> [AccessList] {
        guard let field else { return [] }
        guard case .mapping(let entries) = field.node.content else {
            if case .null = field.node.content { return [] }
            field.fail("is \(field.node.content.name)", expected: "a mapping of names to lists")
            return []
        }
        guard entries.count <= Self.maximumLists else {
            field.fail("has \(entries.count) lists", expected: "at most \(Self.maximumLists)")
            return []
        }
        return Section.distinct(entries, in: field).map { entry in
            let path = Section.path(field.path, entry.key)
            if !isName(entry.key) {
                validation.report(
                    entry.keyOrigin, path, "is not a valid name of a list",
                    expected: "1 to \(maximumNameBytes) letters, digits, `.`, `_` and `-`")
            }
            return accessList(
                named: entry.key, Field(node: entry.value, path: path, validation: validation))
        }
    }

    /// Reads a list and its files. A list with errors stays, so that references to it do not cause
    /// further errors.
    private func accessList(named name: String, _ field: Field) -> AccessList {
        let errorsBefore = validation.errors.count
        let (list, section) = read(field, by: AccessList.table, over: AccessList(name: name))
        if section == nil, case .null = field.node.content {
            field.fail("is empty", expected: "a mapping with files and format")
        }
        guard validation.errors.count == errorsBefore,
            let elements = section?["files"]?.elements
        else { return list }
        let read: AccessList
        do throws(AccessListError) {
            if let known = inForce(list) { read = known } else { read = try list.read() }
        } catch {
            elements[error.file].fail(error.text, expected: error.expected)
            return list
        }
        for warning in read.warnings { elements[warning.file].warn(warning.text) }
        return read
    }

    /// The same list as it was read before, if its files have not changed since.
    private func inForce(_ list: AccessList) -> AccessList? {
        let known = validation.environment.lists.first {
            $0.files == list.files && $0.format == list.format && $0.isCurrent
        }
        guard var known else { return nil }
        known.name = list.name
        return known
    }

    fileprivate func listFiles(_ field: Field) -> [String]? {
        let expected = "a list of files"
        guard let elements = field.list(of: "files") else {
            if case .null = field.node.content { field.fail("has no value", expected: expected) }
            return nil
        }
        guard (1...Self.maximumLists).contains(elements.count) else {
            field.fail(
                elements.isEmpty ? "names no file" : "has \(elements.count) files",
                expected: elements.isEmpty ? expected : "at most \(Self.maximumLists)")
            return nil
        }
        let paths = elements.compactMap { $0.filePath() }
        for path in paths { validation.note(path) }
        for (index, path) in paths.enumerated() where paths[..<index].contains(path) {
            elements[index].fail("\(quoted(path: path)) is listed twice", expected: "each once")
        }
        return paths
    }
}
