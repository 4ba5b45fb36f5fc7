import Testing

@Suite("The package's manifest and the page on its architecture")
struct ManifestTests {
    @Test func `every folder imports only what the manifest allows`() throws {
        var count = 0
        let tables = try Package.imports()
        let modules = tables.flatMap(\.entries).reduce(into: Set<String>()) {
            $0.formUnion($1.imports.union([$1.module]))
        }
        for (base, entries) in tables {
            for file in try Package.files(in: base) where !file.isOutside {
                let entry = try #require(
                    file.entry(of: entries), "\(file.path): no entry is for this folder")
                // Tests' imports of system modules, and of programs among the tests, are not
                // checked.
                for (module, line) in file.imports
                where !Package.alwaysAllowed.contains(module)
                    && (base == "Sources" || modules.contains(module))
                {
                    count += 1
                    #expect(
                        entry.imports.contains(module),
                        "\(file.path):\(line): \(entry.folder) may not import \(module)")
                }
            }
        }
        #expect(count > 1000)
    }

    /// An unused permission would allow an import that no review has seen.
    @Test func `the manifest allows no import that is not used`() throws {
        // No target imports a program that is started.
        let programs: Set = ["ImageTestWorker", "StoreBench"]
        for (base, entries) in try Package.imports() {
            let files = try Package.files(in: base)
            for entry in entries {
                let own = files.filter { $0.entry(of: entries) == entry }
                let unused = entry.imports.subtracting(own.flatMap(\.imports).map(\.module))
                    .subtracting(programs)
                #expect(unused.isEmpty, "\(base)/\(entry.folder)")
            }
        }
    }

    @Test func `the manifest has every folder of a module and no other`() throws {
        for (base, entries) in try Package.imports() {
            let layers = try Package.folders(in: base).filter {
                $0 != "C" && !Package.outside.contains("\(base)/\($0)")
            }
            let folders = try layers.flatMap { layer in
                try Package.folders(in: base + "/" + layer).map { layer + "/" + $0 }
            }
            let declared = entries.filter { $0.folder.split(separator: "/").count == 2 }
            #expect(declared.map(\.folder).sorted() == folders.sorted())
            for entry in entries {
                #expect(try !Package.files(in: base + "/" + entry.folder).isEmpty)
            }
        }
        #expect(try Package.librariesOfC().sorted() == Package.folders(in: "Sources/C"))
    }

    @Test func `a module imports only what stands above it`() throws {
        for (_, entries) in try Package.imports() {
            let modules = Set(entries.map(\.module))
            var above: Set<String> = []
            for entry in entries {
                let below = entry.imports.intersection(modules).subtracting(above)
                #expect(below.isEmpty, "\(entry.folder)")
                above.insert(entry.module)
            }
        }
    }

    @Test func `the page lists what every module may import`() throws {
        let entries = try Package.imports()[0].entries
        let page = try Package.documentedImports()
        let modules = Set(entries.map(\.module)).union(try Package.librariesOfC())
        #expect(page.map(\.module).sorted() == modules.sorted())
        for (module, documented) in page {
            let imports = entries.filter { $0.module == module }
                .reduce(into: Set<String>()) { $0.formUnion($1.imports) }
            #expect(
                documented == imports,
                "\(module): \(documented.symmetricDifference(imports).sorted())")
        }
    }

    @Test func `entries are found in every form`() {
        let manifest = """
            let imports: KeyValuePairs<String, Set<String>> = [
                // Nothing below.
                "Layer/A": [],
                "Layer/B": ["A"],
                "Layer/B/Inner": [
                    "A", "Logging",
                ],
            ]

            let testImports: KeyValuePairs<String, Set<String>> = [
                "Layer/ATests": ["A"],
            ]
            """
        #expect(
            FolderImports.table("imports", in: manifest) == [
                FolderImports(folder: "Layer/A", imports: []),
                FolderImports(folder: "Layer/B", imports: ["A"]),
                FolderImports(folder: "Layer/B/Inner", imports: ["A", "Logging"]),
            ])
        #expect(
            FolderImports.table("testImports", in: manifest + "\n") == [
                FolderImports(folder: "Layer/ATests", imports: ["A"])
            ])
    }
}
