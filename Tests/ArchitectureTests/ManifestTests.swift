import Testing

@Suite("The package's manifest and the page on its architecture")
struct ManifestTests {
    @Test func `every target depends on exactly what it may import`() throws {
        let declared = try Package.declaredTargets()
        for (target, imports) in allowedImports {
            let found = declared.filter { $0.name == target }
            try #require(found.count == 1, "\(target)")
            let missing = imports.subtracting(modulesOfToolchain).subtracting(found[0].dependencies)
            let other = found[0].dependencies.subtracting(imports)
            #expect(missing.isEmpty, "\(target) does not declare what it may import")
            #expect(other.isEmpty, "\(target) may not import what it declares")
        }
    }

    /// What is declared for another target is found by chance only, as long as that was built
    /// before.
    @Test func `what a file imports of the package is declared, and nothing else is`() throws {
        let declared = try Package.declaredTargets()
        let files = try Package.files(in: "Sources") + Package.files(in: "Tests")
        let programs = declared.filter { $0.kind == .program }.map(\.name)
        let modules = declared.reduce(into: Set(declared.map(\.name))) {
            $0.formUnion($1.dependencies)
        }
        var count = 0
        for target in declared {
            let own = files.filter { $0.target == target.name }
            let imported = Set(own.flatMap(\.imports).map(\.module)).intersection(modules)
            count += imported.count
            let undeclared = imported.subtracting(target.dependencies)
            let unused = target.dependencies.subtracting(imported).subtracting(programs)
            #expect(undeclared.isEmpty, "\(target.name) imports what it does not declare")
            #expect(unused.isEmpty, "\(target.name) declares what it does not import")
        }
        #expect(count > 300)
    }

    @Test func `the page says of every target what it may import`() throws {
        let page = try Package.documentedImports()
        #expect(page.map(\.target).sorted() == allowedImports.map(\.target).sorted())
        let documented = Dictionary(page.map { ($0.target, $0.imports) }) { first, _ in first }
        for (target, imports) in allowedImports {
            let found = documented[target] ?? []
            #expect(
                found == imports,
                "\(target): \(found.symmetricDifference(imports).sorted())")
        }
    }

    @Test func `targets are found in every form`() {
        let manifest = """
            products: [.library(name: "P", targets: ["A"])],
            dependencies: [.package(url: "https://example.com/x", from: "1.0.0")],
            targets: [
                .systemLibrary(name: "CA", pkgConfig: "a", providers: [.apt(["a-dev"])]),
                // Nothing below.
                .target(name: "A", swiftSettings: strict + [.unsafeFlags(["-X"])]),
                .executableTarget(
                    name: "B",
                    dependencies: [
                        "CA", "A", .product(name: "Logging", package: "swift-log"),
                        .product(
                            name: "Yams", package: "Yams"),
                    ], swiftSettings: strict),
                .testTarget(name: "BTests", dependencies: ["B"], path: "Tests/BTests"),
            ]
            """
        #expect(
            DeclaredTarget.all(in: manifest) == [
                DeclaredTarget(kind: .system, name: "CA", dependencies: []),
                DeclaredTarget(kind: .library, name: "A", dependencies: []),
                DeclaredTarget(
                    kind: .program, name: "B", dependencies: ["CA", "A", "Logging", "Yams"]),
                DeclaredTarget(kind: .test, name: "BTests", dependencies: ["B"]),
            ])
    }
}
