"""Conan 2: conan create cmake/packaging/conan -s compiler.cppstd=20 --build=missing

The option `decode` adds Eigen, and with it all that makes no masks; `vocabulary` adds PCRE2, and with it the component that
reads tokenizers.
"""
import pathlib
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir


class TooldecodeRecipe(ConanFile):
    name = "tooldecode"
    description = "Correct tool calls, fast"
    license = "Apache-2.0"
    topics = ("llm", "constrained-decoding", "tool-calling")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"decode": [True, False], "vocabulary": [True, False]}
    default_options = {"decode": True, "vocabulary": True}
    no_copy_source = True

    def set_version(self):
        text = (self._root() / "include/tooldecode/version.hpp").read_text(encoding="utf-8")
        self.version = re.search(r'"(\d+\.\d+\.\d+)"', text)[1]

    def _root(self):
        return pathlib.Path(self.recipe_folder).parents[2]

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*"):
            copy(self, pattern, self._root(), self.export_sources_folder)

    def requirements(self):
        if self.options.decode:
            self.requires("eigen/[>=3.4 <4]", transitive_headers=True)
        if self.options.vocabulary:
            self.requires("pcre2/[>=10.40 <11]", transitive_headers=True, transitive_libs=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.variables["TOOLDECODE_DEVELOPER"] = False
        toolchain.variables["TOOLDECODE_DECODE"] = bool(self.options.decode)
        toolchain.variables["TOOLDECODE_C"] = False
        if not self.options.vocabulary:
            toolchain.variables["CMAKE_DISABLE_FIND_PACKAGE_PCRE2"] = True
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        rmdir(self, pathlib.Path(self.package_folder) / "share")
        copy(self, "LICENSE", self.source_folder, pathlib.Path(self.package_folder) / "licenses")

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.set_property("cmake_target_name", "tooldecode::all")  # its own name is a component's
        self.cpp_info.set_property("pkg_config_name", "tooldecode-all")
        constrain = self.cpp_info.components["constrain"]
        constrain.set_property("cmake_target_name", "tooldecode::constrain")
        constrain.set_property("pkg_config_name", "tooldecode-constrain")
        constrain.libs = ["tooldecode_constrain"]
        constrain.defines = ["TOOLDECODE_COMPILED"]
        constrain.bindirs = []
        if self.options.decode:
            core = self.cpp_info.components["core"]
            core.set_property("cmake_target_name", "tooldecode::tooldecode")
            core.set_property("pkg_config_name", "tooldecode")
            core.requires = ["constrain", "eigen::eigen"]
            core.libs = ["tooldecode"]
            core.bindirs = []
        if self.options.vocabulary:
            vocabulary = self.cpp_info.components["vocabulary"]
            vocabulary.set_property("cmake_target_name", "tooldecode::vocabulary")
            vocabulary.set_property("pkg_config_name", "tooldecode-vocabulary")
            vocabulary.requires = ["core" if self.options.decode else "constrain", "pcre2::pcre2-8"]
            vocabulary.libs = ["tooldecode_vocabulary"]
            vocabulary.bindirs = []
