/// The keys of one mapping of the configuration, each declared once. Reading, the check for unknown
/// keys, the printing of what is in effect, and the tests of `config/pinfold.yaml` and of the page
/// Configuration all go by the table.
///
/// To add a key: a property of the snapshot that holds its default, and a line of the table. The
/// tests then ask for it in the file and on the page.
struct KeyTable<Values> {
    /// In the order in which they are read, told and printed.
    let keys: [ConfigurationKey<Values>]
    /// Keys that are known but do not work yet.
    var later: [String] = []

    /// The names of the keys that work.
    var names: [String] { keys.map(\.name) }

    /// The keys and the values as a flow mapping, `{ a: 1, b: 2 }`; nil without any to print.
    func flow(_ values: Values) -> String? {
        let pairs = keys.compactMap { key in key.text(values).map { "\(key.name): \($0)" } }
        return pairs.isEmpty ? nil : "{ \(pairs.joined(separator: ", ")) }"
    }

    /// The keys as the documentation has them, those of mappings among them as `mapping.key`.
    ///
    /// - Parameter defaults: what is printed of them is the default of a key that does not say it.
    func described(_ defaults: Values) -> [DescribedKey] {
        keys.flatMap { $0.described(defaults) }
            + later.map { DescribedKey(name: $0, byDefault: .notYetSupported) }
    }
}

/// A key as the documentation has it.
struct DescribedKey {
    /// What a key has that is not written.
    enum Default {
        case yaml(String)
        case words(String)
        /// Nothing: the key is rejected.
        case notYetSupported
    }

    /// The name within its section, `perClient.connections`.
    var name: String
    var byDefault: Default

    /// The same as a key of a mapping.
    func within(_ mapping: String) -> DescribedKey {
        DescribedKey(name: "\(mapping).\(name)", byDefault: byDefault)
    }
}

/// One key of a mapping.
struct ConfigurationKey<Values> {
    let name: String
    /// Puts what a section says of the key (nil: there is no section) in its place. What is wrong
    /// is reported and leaves what is there, the default.
    let read: (_ reader: SnapshotReader, _ section: Section?, _ values: inout Values) -> Void
    /// The value as YAML; nil: nothing is printed.
    private(set) var text: (Values) -> String?
    /// Prints the lines below the key, in place of a value beside it; nil: it has a value.
    var block: ((_ yaml: inout YAMLText, _ level: Int, _ values: Values) -> Void)?
    /// The key with its default, or the keys of its mapping with theirs.
    var described: (_ defaults: Values) -> [DescribedKey]

    /// A key that is read together with others of its section.
    ///
    /// - Parameter byDefault: the default in words; nil: what is printed of the defaults.
    init(
        _ name: String, byDefault: String? = nil,
        readSection: @escaping (SnapshotReader, Section?, inout Values) -> Void,
        text: @escaping (Values) -> String?
    ) {
        self.name = name
        read = readSection
        self.text = text
        described = { defaults in
            let shown = DescribedKey.Default.yaml(text(defaults) ?? "none")
            return [DescribedKey(name: name, byDefault: byDefault.map { .words($0) } ?? shown)]
        }
    }

    /// A key that is read by what is written of it; nil where it is not written.
    init(
        _ name: String, byDefault: String? = nil,
        read: @escaping (SnapshotReader, Field?, inout Values) -> Void,
        text: @escaping (Values) -> String?
    ) {
        self.init(
            name, byDefault: byDefault,
            readSection: { reader, section, values in read(reader, section?[name], &values) },
            text: text)
    }

    /// A key whose value has a place of its own.
    ///
    /// - Parameters:
    ///   - reading: the value of what is written; nil leaves what is there.
    init<Value>(
        _ name: String, _ place: WritableKeyPath<Values, Value>, byDefault: String? = nil,
        reading: @escaping (SnapshotReader, Field) -> Value?, text: @escaping (Value) -> String?
    ) {
        self.init(
            name, byDefault: byDefault,
            read: { reader, field, values in
                guard let field, let value = reading(reader, field) else { return }
                values[keyPath: place] = value
            },
            text: { text($0[keyPath: place]) })
    }

    /// A mapping with a table of its own.
    ///
    /// - Parameters:
    ///   - isBlock: whether it is printed with a line for each key.
    ///   - defaults: what its keys have where they are not written, by what has been read of the
    ///     mapping around it; nil: what is there.
    init<Inner>(
        _ name: String, _ place: WritableKeyPath<Values, Inner>, table: KeyTable<Inner>,
        isBlock: Bool = false, defaults: ((Values) -> Inner)? = nil
    ) {
        let defaults = defaults ?? { $0[keyPath: place] }
        self.name = name
        read = { reader, section, values in
            values[keyPath: place] =
                reader.read(section?[name], by: table, over: defaults(values)).values
        }
        text = { table.flow($0[keyPath: place]) }
        if isBlock {
            block = { yaml, level, values in yaml.lines(level, table, values[keyPath: place]) }
        }
        described = { values in
            table.described(defaults(values)).map { $0.within(name) }
        }
    }
}

extension ConfigurationKey {
    /// A mapping that is there only if it is written.
    ///
    /// - Parameter empty: what its keys have where they are not written.
    init<Inner>(
        _ name: String, _ place: WritableKeyPath<Values, Inner?>, table: KeyTable<Inner>,
        empty: Inner
    ) {
        self.init(
            name,
            read: { reader, field, values in
                let (inner, section) = reader.read(field, by: table, over: empty)
                if section != nil { values[keyPath: place] = inner }
            },
            text: { $0[keyPath: place].map { table.flow($0) ?? "{}" } })
        described = { _ in table.described(empty).map { $0.within(name) } }
    }

    /// The same key, printed only of some values.
    func printed(if isPrinted: @escaping (Values) -> Bool) -> Self {
        var key = self
        let text = text
        key.text = { isPrinted($0) ? text($0) : nil }
        return key
    }

    /// The same key of values that the key's are a part of.
    func lifted<Outer>(to place: WritableKeyPath<Outer, Values>) -> ConfigurationKey<Outer> {
        let key = self
        var lifted = ConfigurationKey<Outer>(
            name,
            readSection: { reader, section, outer in
                key.read(reader, section, &outer[keyPath: place])
            },
            text: { key.text($0[keyPath: place]) })
        if let block {
            lifted.block = { yaml, level, outer in block(&yaml, level, outer[keyPath: place]) }
        }
        lifted.described = { key.described($0[keyPath: place]) }
        return lifted
    }

    /// A key that must be written.
    ///
    /// - Parameter expected: what would be right, for the error where it is missing.
    static func required<Value>(
        _ name: String, _ place: WritableKeyPath<Values, Value>, expected: String,
        reading: @escaping (SnapshotReader, Field) -> Value?, text: @escaping (Value) -> String?
    ) -> Self {
        Self(
            name, byDefault: "required",
            readSection: { reader, section, values in
                guard let field = section?.required(name, expected: expected),
                    let value = reading(reader, field)
                else { return }
                values[keyPath: place] = value
            },
            text: { text($0[keyPath: place]) })
    }

    /// A duration, kept in milliseconds.
    static func milliseconds(
        _ name: String, _ place: WritableKeyPath<Values, Int64>, in range: ClosedRange<Int64>
    ) -> Self {
        Self(
            name, place, reading: { $1.milliseconds(in: range) }, text: Quantity.text(milliseconds:)
        )
    }

    /// A duration that may be left to another mapping, which `byDefault` names.
    static func milliseconds(
        _ name: String, _ place: WritableKeyPath<Values, Int64?>, in range: ClosedRange<Int64>,
        byDefault: String
    ) -> Self {
        Self(
            name, place, byDefault: byDefault, reading: { $1.milliseconds(in: range) },
            text: { $0.map(Quantity.text(milliseconds:)) })
    }

    /// A duration of whole seconds.
    static func seconds(
        _ name: String, _ place: WritableKeyPath<Values, Int64>, in range: ClosedRange<Int64>
    ) -> Self {
        Self(
            name, place, reading: { $1.seconds(in: range) },
            text: { Quantity.text(milliseconds: $0 * 1_000) })
    }

    /// A size in bytes.
    static func bytes(
        _ name: String, _ place: WritableKeyPath<Values, Int>, in range: ClosedRange<Int>
    ) -> Self {
        Self(name, place, reading: { $1.bytes(in: range) }, text: Quantity.text(bytes:))
    }

    /// A whole number.
    static func integer(
        _ name: String, _ place: WritableKeyPath<Values, Int>, in range: ClosedRange<Int>,
        byDefault: String? = nil
    ) -> Self {
        Self(
            name, place, byDefault: byDefault, reading: { $1.integer(in: range) },
            text: { $0.description })
    }

    /// `true` or `false`.
    static func boolean(_ name: String, _ place: WritableKeyPath<Values, Bool>) -> Self {
        Self(name, place, reading: { $1.boolean() }, text: { $0.description })
    }

    /// One of a few words.
    static func choice<Value: RawRepresentable & CaseIterable>(
        _ name: String, _ place: WritableKeyPath<Values, Value>
    ) -> Self where Value.RawValue == String {
        Self(name, place, reading: { $1.choice() }, text: { $0.rawValue })
    }
}

extension SnapshotReader {
    /// Reads a mapping by its table. The section is there for checks of several keys together.
    ///
    /// - Parameters:
    ///   - values: the defaults.
    func read<Values>(
        _ field: Field?, by table: KeyTable<Values>, over values: Values
    ) -> (values: Values, section: Section?) {
        let section = field?.section(keys: table.names, later: table.later)
        return (read(section, by: table, over: values), section)
    }

    /// Reads a section whose keys have been checked.
    func read<Values>(
        _ section: Section?, by table: KeyTable<Values>, over values: Values
    ) -> Values {
        var values = values
        for key in table.keys { key.read(self, section, &values) }
        return values
    }
}
